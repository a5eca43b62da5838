#include <gtest/gtest.h>

#include "hived/config.h"
#include "sim/cells_replay.h"
#include "sim/replay.h"
#include "sim/report.h"
#include "sim/trace.h"

namespace muster::sim {
namespace {

TEST(Trace, ReadsPhillyAndCutsLargeJobsIntoNodes) {
  const auto jobs = parse_jobs("job_id,submit_s,vc,gpus,duration_s\n0,10,a,4,100\n1,5,b,20,50\n", {});
  ASSERT_TRUE(jobs);
  ASSERT_EQ(jobs->size(), 2U);
  EXPECT_EQ((*jobs)[0].name, "job-1");
  EXPECT_EQ((*jobs)[0].tasks, 3);
  EXPECT_EQ((*jobs)[0].gpus, 8);
  EXPECT_EQ((*jobs)[1].tasks, 1);
  EXPECT_EQ((*jobs)[1].gpus, 4);
}

TEST(Trace, NamesTheLineOfABadNumber) {
  const auto jobs = parse_jobs("job_id,submit_s,vc,gpus,duration_s\n0,x,a,4,100\n", {});
  ASSERT_FALSE(jobs);
  EXPECT_EQ(jobs.error().message, "line 2: column submit_s: want a number, found \"x\"");
}

TEST(Replay, EveryJobRunsAndFifoWaitsLonger) {
  // Two nodes of 8: a 12-GPU gang blocks behind a long 8-GPU job; small short jobs could pass it.
  const auto jobs = parse_jobs("job_id,submit_s,vc,gpus,duration_s\n0,0,a,8,1000\n1,1,a,16,100\n2,2,a,4,50\n3,3,a,4,50\n", {});
  const auto nodes = parse_nodes("2x8");
  ASSERT_TRUE(jobs);
  ASSERT_TRUE(nodes);
  const Summary fifo = summarize(replay(*jobs, *nodes, *named_policy("fifo"), {}));
  const Outcome backfilled = replay(*jobs, *nodes, *named_policy("backfill"), {});
  const Summary backfill = summarize(backfilled);
  EXPECT_EQ(fifo.started, 4);
  EXPECT_EQ(backfill.started, 4);
  EXPECT_GT(fifo.mean_wait_s, 700);
  EXPECT_LT(backfill.mean_wait_s, 300);
  // The gang is not delayed by those that passed it.
  EXPECT_EQ(backfilled.jobs[1].start, std::chrono::seconds(1000));
  EXPECT_NE(to_html({backfilled}).find("<svg"), std::string::npos);
}

TEST(Replay, TheSameTraceGivesTheSameOutcome) {
  const auto jobs = parse_jobs("job_id,submit_s,vc,gpus,duration_s\n0,0,a,3,70\n1,0,b,16,30\n2,0,a,5,20\n3,0,c,1,90\n4,7,c,8,11\n", {});
  const auto nodes = parse_nodes("2x8");
  EXPECT_EQ(to_json({replay(*jobs, *nodes, *named_policy("backfill"), {})}), to_json({replay(*jobs, *nodes, *named_policy("backfill"), {})}));
}

TEST(Cells, QueuesAreVirtualClustersAndOpportunisticJobsGiveWay) {
  const auto config = hived::parse_config(R"(
physicalCluster:
  cellTypes: {NODE: {childCellType: GPU, childCellNumber: 8, isNodeLevel: true}}
  physicalCells: [{cellType: NODE, cellAddress: n0}, {cellType: NODE, cellAddress: n1}]
virtualClusters:
  a: {virtualCells: [{cellType: NODE, cellNumber: 1}]}
  b: {virtualCells: [{cellType: NODE, cellNumber: 1}]}
)");
  ASSERT_TRUE(config);
  const auto jobs = parse_jobs("name,queue,priority,submit_s,duration_s,tasks,gpus,cpu,memory_mib\n"
                               "idle,a,-1,0,1000,2,8,1,1\nmine,b,0,10,100,1,8,1,1\nnext,a,0,20,50,1,8,1,1\nsmall,a,0,21,5,1,1,1,1\n", {});
  ASSERT_TRUE(jobs) << jobs.error().message;
  const auto outcome = replay_cells(*jobs, config->cells, *named_policy("skip"), {});
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_EQ(outcome->evictions, 1);  // the whole opportunistic gang, once
  EXPECT_EQ(outcome->jobs[1].start, std::chrono::seconds(10));
  EXPECT_EQ(outcome->jobs[2].start, std::chrono::seconds(20));
  EXPECT_EQ(outcome->jobs[3].start, std::chrono::seconds(70));
  EXPECT_EQ(summarize(*outcome).started, 4);
  EXPECT_EQ(outcome->gpus_total, 16);
  const auto stranger = parse_jobs("job_id,submit_s,vc,gpus,duration_s\n0,0,c,1,1\n", {});
  EXPECT_EQ(replay_cells(*stranger, config->cells, *named_policy("skip"), {}).error().message, "job \"job-0\": queue \"c\" is no virtual cluster of the configuration, which has a, b");
}

}  // namespace
}  // namespace muster::sim
