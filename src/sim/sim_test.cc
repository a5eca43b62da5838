#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>

#include "hived/config.h"
#include "sim/policy.h"
#include "sim/replay.h"
#include "sim/report.h"
#include "sim/trace.h"

namespace muster::sim {
namespace {

TEST(Trace, ReadsPhillyAndCutsLargeJobsIntoNodes) {
  const auto jobs =
      parse_jobs("job_id,submit_s,vc,gpus,duration_s\n0,10,a,4,100\n1,5,b,20,50\n", {});
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
  EXPECT_EQ(jobs.error().message, "line 2: column submit_s: wanted a number, found \"x\"");
}

TEST(Replay, EveryJobRunsAndFifoWaitsLonger) {
  // Two nodes of 8: a 12-GPU gang blocks behind a long 8-GPU job; small short jobs could pass it.
  const auto jobs = parse_jobs(
      "job_id,submit_s,vc,gpus,duration_s\n0,0,a,8,1000\n1,1,a,16,100\n2,2,a,4,50\n3,3,a,4,50\n",
      {});
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
  const auto jobs = parse_jobs(
      "job_id,submit_s,vc,gpus,duration_s\n0,0,a,3,70\n1,0,b,16,30\n2,0,a,5,20\n3,0,c,1,90\n4,7,c,8,11\n",
      {});
  const auto nodes = parse_nodes("2x8");
  EXPECT_EQ(to_json({replay(*jobs, *nodes, *named_policy("backfill"), {})}),
            to_json({replay(*jobs, *nodes, *named_policy("backfill"), {})}));
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
  const auto jobs = parse_jobs(
      "name,queue,priority,submit_s,duration_s,tasks,gpus,cpu,memory_mib\n"
      "idle,a,-1,0,1000,2,8,1,1\nmine,b,0,10,100,1,8,1,1\nnext,a,0,20,50,1,8,1,1\nsmall,a,0,21,5,1,1,1,1\n",
      {});
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
  EXPECT_EQ(
      replay_cells(*stranger, config->cells, *named_policy("skip"), {}).error().message,
      "job \"job-0\": queue \"c\" is not a virtual cluster of the configuration, which has a, b");
}

TEST(Cells, AGangThatWaitedLongIsReservedForAsInARunningCluster) {
  const auto config = hived::parse_config(R"(
physicalCluster:
  cellTypes: {NODE: {childCellType: GPU, childCellNumber: 8, isNodeLevel: true}}
  physicalCells: [{cellType: NODE, cellAddress: n0}, {cellType: NODE, cellAddress: n1}]
virtualClusters:
  a: {virtualCells: [{cellType: NODE, cellNumber: 2}]}
)");
  ASSERT_TRUE(config);
  // Two nodes of 8: half of one is busy, both are wanted, and small ones keep coming.
  std::string trace =
      "name,queue,priority,submit_s,duration_s,tasks,gpus,cpu,memory_mib\n"
      "first,a,0,0,1000,1,4,1,1\nbig,a,0,10,100,2,8,1,1\n";
  for (int i = 0; i < 20; ++i)
    trace += fmt::format("small{},a,0,{},400,1,4,1,1\n", i, 20 + i * 200);
  const auto jobs = parse_jobs(trace, {});
  ASSERT_TRUE(jobs) << jobs.error().message;
  const auto start_of_big = [&](const char* policy) {
    const auto outcome = replay_cells(*jobs, config->cells, *named_policy(policy), {});
    EXPECT_TRUE(outcome) << outcome.error().message;
    return outcome ? outcome->jobs[1].start : Duration{};
  };
  EXPECT_LT(start_of_big("backfill"), std::chrono::seconds(1100));
  EXPECT_GT(start_of_big("skip"), std::chrono::seconds(4000));
}

TEST(Policies, ComeFromAFileWithTheirQueues) {
  const auto policies = parse_policies(R"(
policies:
- name: a
  backfill: fifo
  placement: fragmentation
- name: b
  durations: learned
  patience: 5m
  reservations: 3
  queues:
  - {name: team, weight: 2, deserved: {nvidia.com/gpu: 4, cpu: 500m}}
)");
  ASSERT_TRUE(policies) << policies.error().message;
  ASSERT_EQ(policies->size(), 2U);
  EXPECT_EQ((*policies)[0].backfill, engine::BackfillMode::kFifo);
  EXPECT_EQ((*policies)[0].engine.placement, engine::PlacementRule::kFragmentation);
  const Policy& b = (*policies)[1];
  EXPECT_FALSE(b.durations_known);
  EXPECT_EQ(b.engine.patience, std::chrono::minutes(5));
  EXPECT_EQ(b.engine.reservations, 3);
  EXPECT_TRUE(b.tenants);
  ASSERT_EQ(b.queues.size(), 1U);
  EXPECT_EQ(b.queues[0].deserved, (engine::ResourceList{{"nvidia.com/gpu", 4}, {"cpu", 500}}));
}

TEST(Policies, SayWhichKeyIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"name: x\nbackfil: fifo\n", "policy: unknown key \"backfil\" (did you mean \"backfill\"?)"},
      {"name: x\nbackfill: lifo\n",
       "policy.backfill: wanted one of reservation, skip, fifo, found \"lifo\""},
      {"policies:\n- backfill: fifo\n", "policies[0].name: is needed"},
      {"policies: []\n", "policies: wanted a list of at least one policy"},
      {"name: x\nqueues:\n- {name: q, deserved: {gpu: many}}\n", "policy.queues[0].deserved.gpu: "},
      {"name: x\npreempt: perhaps\n", "policy.preempt: wanted true or false"},
  };
  for (const auto& [yaml, message] : cases) {
    const auto policies = parse_policies(yaml);
    ASSERT_FALSE(policies) << yaml;
    EXPECT_EQ(policies.error().message.substr(0, std::string(message).size()), message);
  }
}

TEST(Replay, DurationsAreLearnedFromJobsThatEnded) {
  // Two jobs like the third teach that such work takes 100 s, so the gang's start is known and a
  // job of 50 s may pass it.
  std::string csv =
      "job_id,submit_s,vc,gpus,duration_s\n0,0,a,8,100\n1,200,a,8,100\n2,400,a,8,100\n";
  for (int i = 3; i < 6; ++i)
    csv += std::to_string(i) + "," + std::to_string(200 * (i - 3)) + ",a,4,50\n";
  csv += "6,410,a,16,100\n7,420,a,4,50\n";
  const auto jobs = parse_jobs(csv, {});
  ASSERT_TRUE(jobs);
  const auto outcome = replay(*jobs, *parse_nodes("2x8"), *named_policy("backfill-unknown"), {});
  std::map<std::string, Duration> starts;
  for (std::size_t i = 0; i < jobs->size(); ++i) starts[(*jobs)[i].name] = outcome.jobs[i].start;
  EXPECT_EQ(starts["job-7"], std::chrono::seconds(420));
  EXPECT_EQ(starts["job-6"], std::chrono::seconds(500));
}

TEST(Replay, QuotasBoundAQueueAndFollowTheTable) {
  // The virtual cluster has 4 GPUs on the first day and 8 from the second.
  TraceOptions options;
  const auto quotas = parse_quotas("date,a,total\n2020-01-01,4,4\n2020-01-02,8,8\n", options);
  ASSERT_TRUE(quotas);
  ASSERT_EQ(quotas->size(), 2U);
  const auto jobs = parse_jobs(
      "job_id,submit_s,vc,gpus,duration_s\n0,0,a,4,200000\n1,0,a,4,100\n2,90000,a,1,10\n", options);
  Policy policy = *named_policy("backfill");
  policy.tenants = true;
  policy.quota = Quota::kCapability;
  const auto outcome = replay(*jobs, *parse_nodes("1x8"), policy, {}, *quotas);
  EXPECT_EQ(outcome.jobs[0].start, Duration{});
  EXPECT_GE(outcome.jobs[1].start, std::chrono::hours(24));
  const auto fixed = parse_quotas("vc,nodes\na,2\nb,1\n", options);
  ASSERT_TRUE(fixed);
  EXPECT_EQ((*fixed)[0].gpus, 16);
}

TEST(Trace, RefusesTablesThatMeanNothing) {
  EXPECT_FALSE(parse_quotas("vc,nodes,vc\na,2\n", {}));
  EXPECT_FALSE(parse_quotas("vc,nodes\na,9000000000000000000\n", {}));
  EXPECT_FALSE(parse_nodes("2000000x8"));
  EXPECT_FALSE(parse_nodes("1x2000"));
  EXPECT_FALSE(parse_nodes("sn,cpu_milli,memory_mib,gpu,model\na,1,1,2000,x\n"));
}

TEST(Report, ShowsEveryPolicyAndTenant) {
  const auto jobs = parse_jobs(
      "job_id,submit_s,vc,gpus,duration_s\n0,0,red,8,1000\n1,1,blue,16,100\n2,2,red,4,50\n", {});
  const auto nodes = parse_nodes("2x8");
  const std::string html = to_html({replay(*jobs, *nodes, *named_policy("fifo"), {}),
                                    replay(*jobs, *nodes, *named_policy("backfill"), {})});
  for (const char* text : {"GPUs in use",
                           "Jobs waiting",
                           "How long jobs wait",
                           "Fragmentation",
                           "GPUs of each tenant: fifo",
                           "GPUs of each tenant: backfill",
                           "red",
                           "blue"}) {
    EXPECT_NE(html.find(text), std::string::npos) << text;
  }
  // A number that is none would stand in a coordinate or a cell of the table.
  EXPECT_FALSE(std::regex_search(html, std::regex(R"([^a-z]-?(nan|inf)[^a-z])"))) << html;
}

}  // namespace
}  // namespace muster::sim
