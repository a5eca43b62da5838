// What is foretold by a process that saw everything happen, and by those that come after it and know
// no more than the objects.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "answers/durations.h"
#include "answers/forecast.h"
#include "answers/json.h"
#include "answers/records/page.h"
#include "lib/live_server.h"
#include "main/answers.h"

namespace muster {
namespace {

namespace r = client::resources;
constexpr std::size_t kWaiting = 5;

/// Scheduler and answers as the program puts them together.
class Process {
 public:
  explicit Process(LiveServer& server)
      : server_(server),
        informers_(server.loop, *server.client),
        answers_(server.loop,
                 *server.client,
                 informers_,
                 AnswersOptions{answers::HistoryLimits{}, "", false},
                 [this] { return scheduler_.get(); }) {}

  Task<void> start() {
    scheduler::Options options;
    answers_.listen_to(options);
    auto made = scheduler::make_scheduler(server_.loop, *server_.client, informers_, options);
    EXPECT_TRUE(made);
    scheduler_ = std::move(*made);
    scheduler_->start();
    answers_.start();
    co_await settled();
  }
  Task<void> settled() {
    co_await server_.until("there is nothing to do", [this] {
      return scheduler_->ready() && scheduler_->idle() && answers_.idle();
    });
  }
  Task<void> stop() {
    co_await scheduler_->stop();
    co_await answers_.stop();
    co_await informers_.stop_all();
    scheduler_.reset();
  }

  /// What it foretells of all that waits, at that time; empty until what is on record has been read.
  Task<answers::Forecasts> foretold(Time now) {
    answers::Forecasts all;
    for (int looks = 0; looks < 2000; ++looks) {
      const auto copy = co_await answers_.live().follower().copy();
      EXPECT_TRUE(copy);
      if (!copy) break;
      all = answers::forecast_all(**copy, now, answers::SharedDraws(**copy, now), answers::Ask{});
      const bool learned =
          std::all_of(all.jobs.begin(), all.jobs.end(), [](const answers::Forecast& one) {
            return one.start.basis == answers::Basis::kLearned;
          });
      if (learned && all.jobs.size() == kWaiting) co_return all;
      co_await server_.loop.sleep(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << "not all that waits is foretold: " << all.jobs.size();
    co_return all;
  }

 private:
  LiveServer& server_;
  client::Informers informers_;
  Answers answers_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
};

/// Runs that are over, of many lengths.
json::Value page(Time now) {
  std::vector<answers::Record> records;
  for (int i = 0; i < 40; ++i) {
    answers::Record record;
    record.job = fmt::format("bert-{}", i);
    record.uid = fmt::format("uid-{}", i);
    record.ns = "default";
    record.kind = "pod";
    record.user = "ann";
    record.queue = "default";
    record.state = "SUCCEEDED";
    record.submitted = now - std::chrono::hours(40 - i / 2);
    answers::Run run;
    run.start = record.submitted;
    run.end = record.ended = record.submitted + std::chrono::seconds(400 + i * 317 % 2900);
    run.milli = 8000;
    run.how = i % 4 == 0 ? "failed" : "succeeded";
    run.parts = {{run.start, run.end, 8000}};
    record.runs = {run};
    records.push_back(std::move(record));
  }
  return answers::page_object(answers::pack_page(1, records));
}

std::string node(std::string_view name) {
  return fmt::format(
      "{{apiVersion: v1, kind: Node, metadata: {{name: {}}}, status: {{allocatable: {{cpu: '64', memory: 64Gi, pods: '110', nvidia.com/gpu: '8'}}, "
      "conditions: [{{type: Ready, status: 'True'}}]}}}}",
      name);
}

std::string pod(std::string_view name) {
  return fmt::format(
      "{{apiVersion: v1, kind: Pod, metadata: {{name: {}}}, spec: {{containers: [{{name: c, image: i, resources: {{limits: {{nvidia.com/gpu: '8'}}}}}}]}}}}",
      name);
}

/// Two nodes, both taken, and five wait.
Task<void> make_busy(LiveServer& server, Process& first) {
  for (const char* name : {"a", "b"}) co_await server.create(r::kNodes, node(name));
  for (const char* name : {"runs-0", "runs-1"}) {
    co_await server.create(r::kPods, pod(name));
    co_await first.settled();
    json::Value running = json::Object{
        {"status",
         json::Object{{"phase", "Running"}, {"startTime", format_time(server.loop.now())}}}};
    const auto patched = co_await server.client->patch(
        r::kPods, "default", name, "status", client::PatchType::kMerge, std::move(running));
    EXPECT_TRUE(patched) << (patched ? "" : patched.error().message);
  }
  for (std::size_t i = 0; i < kWaiting; ++i)
    co_await server.create(r::kPods, pod(fmt::format("waits-{}", i)));
  co_await first.settled();
}

/// As who asks reads it, byte for byte. The revision alone is left out: it marks what an engine
/// remembers, when it decided last for instance, and so is one process's own.
std::string spell(answers::Forecasts all, Time now) {
  std::string out;
  for (answers::Forecast& one : all.jobs) {
    one.revision = 0;
    out += json::dump(answers::forecast_json(
               one, [](std::string_view gang) { return std::string(gang); }, now)) +
           "\n";
  }
  return out;
}

TEST(Check03, AfterARestartFromObjectsTheSameBytes) {
  LiveServer server;
  server.run([&]() -> Task<void> {
    const Time now = server.loop.now();
    json::Value past = page(now);
    const auto kept = co_await server.client->create(r::kHistoryPages, "", std::move(past));
    EXPECT_TRUE(kept) << (kept ? "" : kept.error().message);
    const Time asked = now + std::chrono::minutes(1);
    std::vector<answers::Forecasts> said;
    for (int process = 0; process < 3; ++process) {
      Process own(server);
      co_await own.start();
      if (process == 0) co_await make_busy(server, own);
      said.push_back(co_await own.foretold(asked));
      co_await own.stop();
    }
    EXPECT_EQ(spell(said[1], asked), spell(said[2], asked));
    // The first one saw the starts itself, and more exactly than objects say them.
    EXPECT_EQ(said[0].jobs.size(), said[1].jobs.size());
    for (std::size_t i = 0; i < said[0].jobs.size() && i < said[1].jobs.size(); ++i) {
      const answers::Forecast &saw = said[0].jobs[i], &read = said[1].jobs[i];
      EXPECT_EQ(saw.job, read.job);
      EXPECT_EQ(saw.place, read.place);
      EXPECT_EQ(saw.refusal.reason, read.refusal.reason);
      for (const auto quantile :
           {&answers::Quantiles::p10, &answers::Quantiles::p50, &answers::Quantiles::p90}) {
        const auto &exact = saw.start.range.*quantile, &rounded = read.start.range.*quantile;
        EXPECT_TRUE(exact && rounded) << saw.job;
        if (exact && rounded)
          EXPECT_LE(std::abs((*exact - *rounded).count()), 3'000'000) << saw.job;
      }
    }
  });
}

}  // namespace
}  // namespace muster
