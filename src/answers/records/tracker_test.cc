#include "answers/records/tracker.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "answers/records/archive.h"
#include "answers/records/page.h"
#include "answers/records/usage.h"

namespace muster::answers {
namespace {

kube::ObjectPtr object(json::Value value) {
  return std::make_shared<const json::Value>(std::move(value));
}

/// 2026-11-16 20:00, so that a busy day passes midnight.
const Time kBegin = *parse_time("2026-11-16T20:00:00Z");

struct PodSays {
  std::string name, uid, job, job_uid, node;
  std::string user, queue;
  int gpus = 1;
  int share = 0;  // thousandths; 0: whole GPUs
  std::string phase = "Pending";
  Time bound, ended;
  bool evicted = false;
};

json::Value pod_json(const PodSays& says) {
  json::Value pod = json::Object{};
  json::make(pod, {"metadata", "name"}) = says.name;
  json::make(pod, {"metadata", "namespace"}) = "team";
  json::make(pod, {"metadata", "uid"}) = says.uid;
  json::make(pod, {"metadata", "creationTimestamp"}) = format_time(kBegin);
  json::make_object(pod, {"metadata", "labels"})["user"] = says.user;
  json::Object& annotations = json::make_object(pod, {"metadata", "annotations"});
  annotations["scheduling.volcano.sh/queue-name"] = says.queue;
  if (says.share > 0) annotations["muster.dev/gpu-milli"] = std::to_string(says.share);
  if (!says.job.empty())
    json::make(pod, {"metadata", "ownerReferences"}) =
        json::Array{json::Object{{"apiVersion", "batch.volcano.sh/v1alpha1"},
                                 {"kind", "Job"},
                                 {"name", says.job},
                                 {"uid", says.job_uid},
                                 {"controller", true}}};
  json::make(pod, {"spec", "containers"}) = json::Array{json::Object{
      {"name", "c"},
      {"image", "trainer:1"},
      {"command", json::Array{"train", "--secret=hunter2"}},
      {"resources",
       json::Object{{"limits", json::Object{{"nvidia.com/gpu", std::to_string(says.gpus)}}}}}}};
  if (!says.node.empty()) json::make(pod, {"spec", "nodeName"}) = says.node;
  json::make(pod, {"status", "phase"}) = says.phase;
  json::Array conditions;
  if (says.bound)
    conditions.push_back(json::Object{{"type", "PodScheduled"},
                                      {"status", "True"},
                                      {"lastTransitionTime", format_time(says.bound)}});
  if (says.evicted)
    conditions.push_back(json::Object{
        {"type", "DisruptionTarget"}, {"status", "True"}, {"reason", "PreemptionByScheduler"}});
  json::make(pod, {"status", "conditions"}) = std::move(conditions);
  if (says.ended)
    json::make(pod, {"status", "containerStatuses"}) = json::Array{
        json::Object{{"state",
                      json::Object{{"terminated",
                                    json::Object{{"exitCode", says.phase == "Failed" ? 7 : 0},
                                                 {"finishedAt", format_time(says.ended)}}}}}}};
  return pod;
}

json::Value job_json(const std::string& name, const std::string& uid, const PodSays& like) {
  json::Value job = json::Object{};
  json::make(job, {"metadata", "name"}) = name;
  json::make(job, {"metadata", "namespace"}) = "team";
  json::make(job, {"metadata", "uid"}) = uid;
  json::make(job, {"metadata", "creationTimestamp"}) = format_time(kBegin);
  json::make_object(job, {"metadata", "labels"})["user"] = like.user;
  json::make(job, {"spec", "queue"}) = like.queue;
  json::make(job, {"status", "state", "phase"}) = "Running";
  return job;
}

/// A tracker whose records are kept as they were last written.
struct Kept {
  std::map<std::string, Record> records;
  int writes = 0;
  std::vector<std::string> began;
  Tracker tracker{{[this](Tracked& job) {
                     ++writes;
                     job.stored = true;
                     records[job.uid] = tracker.now_of(job);
                   },
                   [this](const Tracked& job) { began.push_back(job.uid); },
                   [](const std::string&) { return std::string("H100"); },
                   {}}};

  [[nodiscard]] UsageDays usage(Time now) {
    UsageDays days;
    std::set<std::string> live;
    tracker.each([&](Tracked& job) {
      live.insert(job.uid);
      add_usage(tracker.now_of(job), now, days);
    });
    for (const auto& [uid, record] : records) {
      if (!live.contains(uid)) add_usage(record, now, days);
    }
    return days;
  }
};

PodSays lone(const std::string& name) {
  PodSays says;
  says.name = name;
  says.uid = "uid-" + name;
  says.user = "alice";
  says.queue = "research";
  return says;
}

/// By what its pods say durations are learned, whatever the job's object says.
TEST(Tracker, ARecordKnowsWhatItsPodsAreCalled) {
  Kept kept;
  PodSays says = lone("sweep-3-worker-0");
  says.job = "sweep-3";
  says.job_uid = "uid-sweep";
  PodSays job = says;
  job.user = "bob";
  kept.tracker.job_changed(
      JobKind::kVcJob, nullptr, object(job_json("sweep-3", "uid-sweep", job)), kBegin);
  says.node = "n1";
  says.bound = kBegin;
  says.phase = "Running";
  kept.tracker.pod_changed(nullptr, object(pod_json(says)), kBegin);
  kept.tracker.each([&](Tracked& one) {
    const Record record = parse_record(record_json(kept.tracker.now_of(one)));
    EXPECT_EQ(record.user, "bob");
    EXPECT_EQ(record.pods_user, "alice");
    EXPECT_EQ(record.stem, "sweep");
    EXPECT_EQ(record.pods_stem, "") << "that of its owner";
    EXPECT_EQ(record.model, "H100");
    EXPECT_FALSE(record.model_asked);
  });
}

/// Deleted and submitted again under its name while a task of the first still runs: two jobs.
TEST(Tracker, AJobThatComesAgainDoesNotTakeTheFirstOnesTasks) {
  Kept kept;
  PodSays says = lone("sweep-worker-0");
  says.job = "sweep";
  says.job_uid = "uid-first";
  says.node = "n1";
  says.bound = kBegin;
  says.phase = "Running";
  const auto first = object(job_json("sweep", "uid-first", says));
  const auto pod = object(pod_json(says));
  kept.tracker.job_changed(JobKind::kVcJob, nullptr, first, kBegin);
  kept.tracker.pod_changed(nullptr, pod, kBegin);
  kept.tracker.job_changed(JobKind::kVcJob, first, nullptr, kBegin + std::chrono::seconds(5));
  kept.tracker.job_changed(JobKind::kVcJob,
                           nullptr,
                           object(job_json("sweep", "uid-second", says)),
                           kBegin + std::chrono::seconds(6));
  const Tracked* old = kept.tracker.find_uid("uid-first");
  const Tracked* young = kept.tracker.find_uid("uid-second");
  ASSERT_TRUE(old != nullptr && young != nullptr);
  EXPECT_NE(old, young);
  EXPECT_EQ(old->uid, "uid-first");
  EXPECT_EQ(young->uid, "uid-second");
  EXPECT_EQ(kept.began, std::vector<std::string>{"uid-first"});
  kept.tracker.pod_changed(pod, nullptr, kBegin + std::chrono::seconds(10));
  EXPECT_EQ(kept.tracker.find_uid("uid-first"), nullptr) << "it is over";
  EXPECT_EQ(kept.tracker.find_uid("uid-second"), young);
  ASSERT_TRUE(kept.records.contains("uid-first"));
  EXPECT_EQ(kept.records.at("uid-first").runs.back().end, kBegin + std::chrono::seconds(10));
  // The first is over and forgotten; of the second there is nothing to tell yet.
  kept.tracker.each([&](Tracked& job) { ADD_FAILURE() << job.uid; });
}

TEST(Tracker, AJobThatNeverWaitsIsWrittenOnceAtItsEnd) {
  Kept kept;
  PodSays says = lone("p");
  const auto pending = object(pod_json(says));
  kept.tracker.pod_changed(nullptr, pending, kBegin);
  says.node = "n1";
  says.bound = kBegin + std::chrono::seconds(1);
  const auto bound = object(pod_json(says));
  kept.tracker.pod_changed(pending, bound, says.bound);
  EXPECT_EQ(kept.writes, 0);
  says.phase = "Succeeded";
  says.ended = kBegin + std::chrono::seconds(61);
  kept.tracker.pod_changed(bound, object(pod_json(says)), says.ended);
  ASSERT_EQ(kept.writes, 1);
  const Record& record = kept.records.at("uid-p");
  EXPECT_EQ(record.state, "SUCCEEDED");
  EXPECT_EQ(record.user, "alice");
  EXPECT_EQ(record.queue, "research");
  EXPECT_EQ(record.model, "H100");
  EXPECT_EQ(record.image, "trainer:1");
  ASSERT_EQ(record.runs.size(), 1U);
  EXPECT_EQ(record.runs[0].parts, (std::vector<Part>{{says.bound, says.ended, 1000}}));
  // A hash of the command, and no word of it.
  EXPECT_EQ(json::dump(record_json(record)).find("hunter2"), std::string::npos);
  EXPECT_EQ(record.command.size(), 16U);
  EXPECT_EQ(parse_record(record_json(record)), record);
}

TEST(Tracker, AWaitIsWrittenWhenItIsToldAndAgainAtStartAndEnd) {
  Kept kept;
  PodSays says = lone("p");
  const auto pending = object(pod_json(says));
  kept.tracker.pod_changed(nullptr, pending, kBegin);
  kept.tracker.waits(pending, "", {"NoNodeFits", "", "0/3 nodes", kBegin, {}});
  EXPECT_EQ(kept.writes, 1);
  // The same story again is no news.
  kept.tracker.waits(
      pending, "", {"NoNodeFits", "", "0/2 nodes", kBegin + std::chrono::seconds(5), {}});
  EXPECT_EQ(kept.writes, 1);
  kept.tracker.waits(
      pending, "", {"HeldForReservation", "team/big", "", kBegin + std::chrono::seconds(9), {}});
  says.node = "n1";
  says.bound = kBegin + std::chrono::seconds(20);
  const auto bound = object(pod_json(says));
  kept.tracker.pod_changed(pending, bound, says.bound);
  EXPECT_EQ(kept.writes, 2);
  kept.tracker.pod_changed(bound, nullptr, kBegin + std::chrono::seconds(50));
  EXPECT_EQ(kept.writes, 3);
  const Record& record = kept.records.at("uid-p");
  EXPECT_EQ(record.state, "STOPPED");
  ASSERT_EQ(record.waits.size(), 2U);
  EXPECT_EQ(record.waits[0].to, kBegin + std::chrono::seconds(9));
  EXPECT_EQ(record.waits[1].to, says.bound);
  EXPECT_EQ(kept.tracker.size(), 0U);
}

TEST(Tracker, APreemptedGangComesBackAsAnotherRunAndSaysForWhom) {
  Kept kept;
  PodSays says = lone("g-0");
  says.job = "g";
  says.job_uid = "uid-job";
  kept.tracker.job_changed(
      JobKind::kVcJob, nullptr, object(job_json("g", "uid-job", says)), kBegin);
  says.node = "n1";
  says.bound = kBegin + std::chrono::seconds(10);
  const auto first = object(pod_json(says));
  kept.tracker.pod_changed(nullptr, first, says.bound);
  kept.tracker.evicting("team/g-0", "team/urgent");
  kept.tracker.pod_changed(first, nullptr, kBegin + std::chrono::seconds(40));
  EXPECT_EQ(kept.writes, 1) << "its pods are gone: what they held must not be lost";
  says.uid = "uid-again";
  says.bound = kBegin + std::chrono::seconds(60);
  const auto second = object(pod_json(says));
  kept.tracker.pod_changed(nullptr, second, says.bound);
  kept.tracker.job_changed(
      JobKind::kVcJob, object(job_json("g", "uid-job", says)), nullptr, says.bound);
  kept.tracker.pod_changed(second, nullptr, kBegin + std::chrono::seconds(90));
  const Record& record = kept.records.at("uid-job");
  ASSERT_EQ(record.runs.size(), 2U);
  EXPECT_EQ(record.runs[0].how, "evicted");
  EXPECT_EQ(record.runs[0].by, "team/urgent");
  EXPECT_EQ(record.runs[1].how, "stopped");
  UsageDays days;
  add_usage(record, kBegin + std::chrono::hours(1), days);
  const Usage usage = days.at("2026-11-16").begin()->second;
  EXPECT_EQ(usage.held, 60 * 1000);
  EXPECT_EQ(usage.discarded, 30 * 1000);
  EXPECT_EQ(usage.preempted, 1);
}

TEST(Tracker, WhatWasWrittenBeforeACrashIsNotCountedAgainAndWhatWasNotIs) {
  PodSays says = lone("p");
  says.node = "n1";
  says.bound = kBegin;
  says.phase = "Succeeded";
  says.ended = kBegin + std::chrono::seconds(30);
  const auto over = object(pod_json(says));
  for (const bool written : {false, true}) {
    Kept kept;
    if (written) {
      Record record;
      record.uid = "uid-p";
      record.job = "p";
      record.ns = "team";
      record.kind = "pod";
      record.state = "SUCCEEDED";
      record.submitted = kBegin;
      record.ended = says.ended;
      record.runs.push_back({says.bound,
                             says.ended,
                             1000,
                             {"n1"},
                             "succeeded",
                             "",
                             false,
                             {{says.bound, says.ended, 1000}}});
      kept.records[record.uid] = record;
      kept.tracker.restore(record);
    }
    kept.tracker.pod_changed(nullptr, over, kBegin + std::chrono::hours(1));
    kept.tracker.settled(kBegin + std::chrono::hours(1));
    EXPECT_EQ(kept.writes, written ? 0 : 1);
    const Record& record = kept.records.at("uid-p");
    ASSERT_EQ(record.runs.size(), 1U);
    EXPECT_EQ(record.runs[0].parts, (std::vector<Part>{{says.bound, says.ended, 1000}}));
  }
}

// ------------------------------------------------------------------------------------- check 29

/// A random day: pods of lone users and of elastic gangs come and go, are preempted, lose their
/// nodes, hold shares. Who held what is added up second by second beside the tracker.
class Day {
 public:
  explicit Day(unsigned seed) : random_(seed) {}

  void play() {
    for (int job = 0; job < 12; ++job) {
      PodSays like;
      like.user = fmt::format("user-{}", pick(4));
      like.queue = fmt::format("queue-{}", pick(3));
      like.gpus = 1 + pick(8);
      if (pick(4) == 0) like.share = 100 + pick(800);
      like.job = fmt::format("job-{}", job);
      like.job_uid = "uid-" + like.job;
      jobs_.push_back(like);
      kept_.tracker.job_changed(
          JobKind::kVcJob, nullptr, object(job_json(like.job, like.job_uid, like)), now_);
    }
    for (int step = 0; step < 400; ++step) {
      pass(pick(180));
      if (held_.empty() || pick(3) != 0)
        start_one();
      else
        end_one();
    }
    pass(100);
  }

  void judge() {
    std::map<std::string, std::int64_t> users, queues;
    std::int64_t all = 0, guaranteed = 0, opportunistic = 0;
    for (const auto& [day, rows] : kept_.usage(now_)) {
      for (const auto& [key, usage] : rows) {
        users[key[0]] += usage.held;
        queues[key[2]] += usage.held;
        all += usage.held;
        guaranteed += usage.guaranteed;
        opportunistic += usage.opportunistic;
      }
    }
    std::erase_if(users, [](const auto& one) { return one.second == 0; });
    std::erase_if(queues, [](const auto& one) { return one.second == 0; });
    EXPECT_EQ(all, all_);
    EXPECT_EQ(users, users_);
    EXPECT_EQ(queues, queues_);
    EXPECT_EQ(guaranteed, all_) << "no pod of the day is opportunistic";
    EXPECT_EQ(opportunistic, 0);
  }

 private:
  struct Holding {
    PodSays says;
    kube::ObjectPtr object;
  };

  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  static std::int64_t milli(const PodSays& says) {
    return says.share > 0 ? says.share : says.gpus * 1000;
  }

  void pass(int seconds) {
    for (const auto& [name, one] : held_) {
      const std::int64_t amount = milli(one.says) * seconds;
      if (amount == 0) continue;
      users_[one.says.user] += amount;
      queues_[one.says.queue] += amount;
      all_ += amount;
    }
    now_ = now_ + std::chrono::seconds(seconds);
  }

  void start_one() {
    PodSays says = jobs_[static_cast<std::size_t>(pick(static_cast<int>(jobs_.size())))];
    says.name = fmt::format("{}-{}", says.job, count_);
    says.uid = fmt::format("pod-{}", count_++);
    if (pick(5) == 0) {  // nobody's task: a pod by itself
      says.job.clear();
      says.job_uid.clear();
    }
    const auto pending = object(pod_json(says));
    kept_.tracker.pod_changed(nullptr, pending, now_);
    says.node = fmt::format("n{}", pick(5));
    says.bound = now_;
    const auto bound = object(pod_json(says));
    kept_.tracker.pod_changed(pending, bound, now_);
    held_[says.name] = {says, bound};
  }

  void end_one() {
    auto one = std::next(held_.begin(), pick(static_cast<int>(held_.size())));
    Holding holding = one->second;
    held_.erase(one);
    PodSays says = holding.says;
    switch (pick(4)) {
      case 0:  // ends by itself, and is seen a little later
        says.phase = pick(2) == 0 ? "Succeeded" : "Failed";
        says.ended = now_;
        kept_.tracker.pod_changed(
            holding.object, object(pod_json(says)), now_ + std::chrono::seconds(2));
        break;
      case 1:  // preempted
        kept_.tracker.evicting("team/" + says.name, "team/urgent");
        kept_.tracker.pod_changed(holding.object, nullptr, now_);
        break;
      default:  // its node went, or its owner stopped it
        kept_.tracker.pod_changed(holding.object, nullptr, now_);
    }
  }

  std::mt19937 random_;
  Time now_ = kBegin;
  Kept kept_;
  std::vector<PodSays> jobs_;
  std::map<std::string, Holding> held_;
  int count_ = 0;
  std::map<std::string, std::int64_t> users_, queues_;
  std::int64_t all_ = 0;
};

TEST(Check29, GpuSecondsByUserByQueueAndOverTheClusterAreTheIntegral) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Day day(seed);
    day.play();
    day.judge();
    if (HasFailure()) return;
  }
}

TEST(Usage, OpportunisticTimeIsNeverCountedAsGuaranteed) {
  Record record;
  record.user = "alice";
  record.state = "SUCCEEDED";
  record.submitted = kBegin;
  record.ended = kBegin + std::chrono::seconds(100);
  answers::Run run;
  run.start = kBegin;
  run.end = record.ended;
  run.opportunistic = true;
  run.parts = {{run.start, run.end, 4000}};
  record.runs = {run};
  UsageDays days;
  add_usage(record, record.ended, days);
  const Usage& usage = days.begin()->second.begin()->second;
  EXPECT_EQ(usage.opportunistic, 400'000);
  EXPECT_EQ(usage.guaranteed, 0);
}

std::vector<Record> thousand(int page) {
  std::vector<Record> records;
  for (int i = 0; i < 1000; ++i) {
    Record record;
    record.job = fmt::format("bert-{}", i);
    record.uid =
        fmt::format("7f0c{:04x}-9b1d-4c55-{:04x}-2f6a90b1{:04x}", i * 7919 % 65536, page, i);
    record.ns = "team";
    record.kind = "pytorchjob";
    record.user = fmt::format("user-{}", i % 17);
    record.queue = "research";
    record.state = i % 5 == 0 ? "FAILED" : "SUCCEEDED";
    record.submitted = kBegin + std::chrono::seconds(i * 37);
    record.ended = record.submitted + std::chrono::seconds(600 + i % 911);
    answers::Run run;
    run.start = record.submitted + std::chrono::seconds(i % 60);
    run.end = record.ended;
    run.milli = 8000;
    run.nodes = {fmt::format("node-{}", i % 128)};
    run.how = "succeeded";
    run.parts = {{run.start, run.end, 8000}};
    record.runs = {run};
    records.push_back(std::move(record));
  }
  return records;
}

TEST(Page, ComesBackAsItWasPacked) {
  const std::vector<Record> records = thousand(3);
  const Page page = pack_page(3, records);
  const auto again = parse_page(page_object(page));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->head.users.size(), 17U);
  const auto held = unpack_page(*again);
  ASSERT_TRUE(held);
  EXPECT_EQ(*held, records);
  // 200,000 records in at most 25 MB.
  EXPECT_LE(page.packed.size(), 125'000U);
}

/// What it costs in time is measured by bench/answers; here is what can be counted.
TEST(Check30, TwoHundredThousandRecordsTakeLittleRoomAndAListLooksNoFurtherThanItMust) {
  Archive archive;
  std::size_t stored = 0;
  for (int number = 1; number <= 200; ++number) {
    Page page = pack_page(number, thousand(number));
    stored += json::dump(page_object(page)).size();
    const auto records = unpack_page(page);
    ASSERT_TRUE(records);
    archive.add(std::move(page), *records);
  }
  EXPECT_LE(stored, std::size_t{25'000'000});
  ASSERT_EQ(archive.size(), 200'000U);
  RecordQuery query;
  query.user = "user-16";
  std::size_t looked_at = 0;
  const auto list = [&] {
    std::vector<Summary> rows;
    looked_at = 0;
    newest_first(archive.pages(), [&](const Summary& row) {
      ++looked_at;
      if (query.matches(row)) rows.push_back(row);
      return rows.size() < query.limit;
    });
    return rows;
  };
  EXPECT_EQ(list().size(), 100U);
  // One record in seventeen is this user's.
  EXPECT_LE(looked_at, 100U * 17 + 1000) << "a list ends with its last row";
  query.limit = 1;
  EXPECT_EQ(list().size(), 1U);
  EXPECT_LE(looked_at, 1000U);
  const std::string first = "7f0c0000-9b1d-4c55-0001-2f6a90b10000";
  ASSERT_TRUE(archive.page_of(first));
  ASSERT_TRUE(find_in(*archive.page_of(first), first));
  EXPECT_EQ(archive.drop_oldest(), 1);
  EXPECT_EQ(archive.size(), 199'000U);
  EXPECT_FALSE(archive.holds(first));
}

TEST(Page, WhatIsNoPageIsRefusedInWords) {
  Page page = pack_page(1, {});
  page.packed = "%%%";
  EXPECT_FALSE(unpack_page(page));
  page.packed = "aGVsbG8=";
  const auto broken = unpack_page(page);
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().message.find("page-00000001"), std::string::npos);
  EXPECT_FALSE(parse_page(json::Object{{"number", 0}}));
}

}  // namespace
}  // namespace muster::answers
