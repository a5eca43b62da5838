/// Topic `job/ID`: everything about one job, with why it waits in the scheduler's own numbers.
#include <fmt/core.h>

#include <algorithm>

#include "answers/visitor.h"
#include "base/strings.h"
#include "json/text.h"
#include "json/yaml.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "portal/jobs/rows.h"
#include "portal/topics/advice.h"
#include "portal/topics/topics.h"
#include "portal/topics/waiting.h"

namespace muster::portal {
namespace {

std::string row_text(const World& world, const JobIndex::Entry& entry) {
  std::string out;
  const answers::Forecast* forecast = forecast_of(world, entry);
  append_row(out, world.jobs.table(), entry.slot, forecast ? told_of(*forecast) : Told{});
  return out;
}

json::Value millis_value(Millis time) {
  return time == 0 ? json::Value(nullptr) : json::Value(time);
}

/// The scheduler's word for whom a gang or pod waits; its group's name first.
std::optional<WaitFacts> ask_why(const World& world, const JobIndex::Entry& entry) {
  if (!world.options.why) return std::nullopt;
  for (const std::string& key : gang_keys(entry)) {
    if (auto found = world.options.why(key); found) return found;
  }
  return std::nullopt;
}

std::string_view cause_kind(std::string_view cause) {
  if (cause.starts_with("Insufficient")) return "in-use";
  if (cause.find("unschedulable") != std::string_view::npos ||
      cause.find("taint") != std::string_view::npos ||
      cause.find("not ready") != std::string_view::npos)
    return "unusable";
  return "other";
}

json::Value expected_start(const World& world, const JobIndex::Entry& entry) {
  const answers::Forecast* forecast = forecast_of(world, entry);
  return forecast == nullptr ? json::Value(nullptr) : millis_value(told_of(*forecast).start);
}

json::Value ahead_of(const World& world, const Visible& visible, const std::string& key) {
  const JobIndex::Entry* entry = job_of_gang(world, visible, key);
  if (entry == nullptr)
    return {{"id", nullptr},
            {"name", ""},
            {"user", ""},
            {"prio", {{"class", ""}, {"number", 0}}},
            {"gpus", 0},
            {"start", nullptr}};
  const Keys& keys = world.jobs.table().keys(entry->slot);
  const Words& words = world.jobs.table().words();
  return {{"id", entry->facts.id},
          {"name", entry->facts.name},
          {"user", entry->facts.user},
          {"prio", {{"class", words.text(keys.prio_class)}, {"number", keys.prio}}},
          {"gpus", keys.gpus},
          {"start", expected_start(world, *entry)}};
}

/// "another team's job" where this user may not know it.
json::Array waits_for(const World& world, const Visible& visible, const answers::Forecast& told) {
  json::Array list;
  for (const answers::WaitsFor& one : told.waits_for) {
    const JobIndex::Entry* entry = job_of_gang(world, visible, one.job);
    const bool ends = one.basis != answers::Basis::kNone;
    const auto time = [&](const std::optional<Time>& at) {
      return ends && at ? json::Value(at->us / 1000) : json::Value(nullptr);
    };
    list.push_back(
        {{"id", entry == nullptr ? json::Value(nullptr) : json::Value(entry->facts.id)},
         {"name", entry == nullptr ? std::string(answers::kAnothersJob) : entry->facts.name},
         {"user", entry == nullptr ? "" : entry->facts.user},
         {"gpus", static_cast<double>(one.gpu_milli) / 1000},
         {"basis", answers::basis_name(one.basis)},
         {"runs", one.runs},
         {"endLow", time(one.end.p10)},
         {"end", time(one.end.p50)},
         {"endHigh", time(one.end.p90)}});
  }
  return list;
}

std::string basis_text(const answers::Forecast& told) {
  if (told.start.basis == answers::Basis::kKnown)
    return "the jobs ahead of it declare how long they last";
  std::int32_t runs = 0;
  for (const answers::WaitsFor& one : told.waits_for) runs = std::max(runs, one.runs);
  return runs > 0 ? fmt::format("learned from {} runs like those it waits for", runs)
                  : "learned from runs like those it waits for";
}

void add_forecast(const World& world,
                  const Visible& visible,
                  const JobIndex::Entry& entry,
                  json::Object& wait) {
  const answers::Forecast* forecast = forecast_of(world, entry);
  if (forecast == nullptr) return;
  const Told told = told_of(*forecast);
  wait["start"] = millis_value(told.start);
  wait["startLow"] = millis_value(told.low);
  wait["startHigh"] = millis_value(told.high);
  wait["basis"] = answers::basis_name(told.basis);
  const bool none = told.basis == answers::Basis::kNone;
  wait["basisText"] = none ? std::string() : basis_text(*forecast);
  // Who is in the way may be nobody whom this user knows; why nothing can be told is in the engine's
  // own words, which are on this page already when they are the reason of the wait.
  if (none && forecast->start.basis != answers::Basis::kNone)
    wait["basisText"] = "it starts beyond the time looked ahead";
  wait["waitsFor"] = waits_for(world, visible, *forecast);
  if (none && forecast->start.not_before) wait["until"] = forecast->start.not_before->us / 1000;
}

json::Value wait_value(const World& world, const Visible& visible, const JobIndex::Entry& entry) {
  const Keys& keys = world.jobs.table().keys(entry.slot);
  if (keys.state != State::kWaiting) return nullptr;
  const WaitText& told = world.jobs.table().texts(entry.slot).wait;
  // The scheduler has nothing to say of what has its nodes and does not come to run there.
  const auto why = keys.phase == Phase::kStarting ? std::nullopt : ask_why(world, entry);
  if (!why && told.text.empty()) return nullptr;
  json::Array causes, shortages, ahead;
  json::Object wait{{"at", world.now()},
                    {"reason", told.reason},
                    {"text", told.text},
                    {"place", nullptr},
                    {"ahead", 0},
                    {"start", nullptr},
                    {"startLow", nullptr},
                    {"startHigh", nullptr},
                    {"basis", "none"},
                    {"basisText", ""},
                    {"nodesTotal", 0},
                    {"queue", world.jobs.table().words().text(keys.queue)},
                    {"of", nullptr},
                    {"subject", ""},
                    {"subjectId", nullptr},
                    {"until", nullptr},
                    {"preemption", ""},
                    {"waitsFor", json::Array{}},
                    {"alternatives", nullptr}};
  if (why) {
    wait["reason"] = why->reason;
    if (!why->text.empty()) wait["text"] = why->text;
    wait["place"] = why->place;
    wait["ahead"] = std::max(why->ahead_count, why->place - 1);
    wait["nodesTotal"] = why->nodes_total;
    if (!why->queue.empty()) wait["queue"] = why->queue;
    // With cells, those of one virtual cluster stand in one line.
    const bool in_vc = !entry.facts.vc.empty() && entry.facts.cell_priority;
    if (in_vc) wait["queue"] = entry.facts.vc;
    const Share line = in_vc ? world.tally.vc(keys.vc) : world.tally.queue(keys.queue);
    if (why->place > 0) wait["of"] = std::max<std::int64_t>(why->place, line.waiting);
    wait["subject"] = why->subject;
    if (const JobIndex::Entry* subject = job_of_gang(world, visible, why->subject))
      wait["subjectId"] = subject->facts.id;
    wait["until"] = millis_value(why->until_ms);
    wait["preemption"] = why->preemption;
    if (why->start_ms != 0) {
      // The engine names a start only where it knows when what runs will end.
      wait["start"] = wait["startLow"] = wait["startHigh"] = why->start_ms;
      wait["basis"] = "known";
      wait["basisText"] = "from the durations that running jobs state";
    }
    for (const auto& cause : why->causes)
      causes.push_back(
          {{"cause", cause.cause}, {"nodes", cause.nodes}, {"kind", cause_kind(cause.cause)}});
    for (const auto& shortage : why->shortages)
      shortages.push_back({{"resource", shortage.resource},
                           {"wanted", shortage.wanted},
                           {"available", shortage.available},
                           {"limit", shortage.limit}});
    for (std::size_t i = 0; i < why->ahead.size() && i < 3; ++i)
      ahead.push_back(ahead_of(world, visible, why->ahead[i]));
  }
  wait["byCause"] = std::move(causes);
  wait["shortages"] = std::move(shortages);
  wait["aheadFirst"] = std::move(ahead);
  add_forecast(world, visible, entry, wait);
  return wait;
}

json::Value failure_value(const World& world, const JobIndex::Entry& entry) {
  if (world.jobs.table().keys(entry.slot).state != State::kFailed) return nullptr;
  const TaskFacts* first = nullptr;
  for (const auto& [name, task] : entry.tasks) {
    if (task.state == TaskState::kFailed && (first == nullptr || task.ended < first->ended))
      first = &task;
  }
  const Texts& texts = world.jobs.table().texts(entry.slot);
  const Advice advice =
      advice_for(texts.has_exit ? std::optional(texts.exit_code) : std::nullopt, texts.exit_phrase);
  std::string text = entry.facts.failure;
  if (first != nullptr && text.empty())
    text = fmt::format("{} on {}{}{}",
                       task_id(*first),
                       first->node.empty() ? "no node" : first->node,
                       first->reason.empty() ? "" : ": ",
                       first->reason);
  return {{"code", texts.has_exit ? json::Value(texts.exit_code) : json::Value(nullptr)},
          {"reason", advice.reason},
          {"text", text},
          {"advice", advice.advice},
          {"task", first == nullptr ? json::Value(nullptr) : json::Value(task_id(*first))}};
}

struct Role {
  int tasks = 0, gpus = 0;
  std::int64_t cpu_milli = 0, memory = 0;
};

/// People may write Frameworks themselves.
constexpr std::size_t kSpecValuesMax = 1000;

/// All of its tasks or none: by a group, or by HiveD's, which is in the pods of a Framework.
bool starts_whole(const JobIndex::Entry& entry) {
  if (entry.group != nullptr) return true;
  if (!entry.object) return false;
  for (const json::Value& role : json::array_at(*entry.object, "spec", "taskRoles")) {
    const json::Value& pod = json::at(role, "task", "pod");
    const auto spec = json::parse_yaml_one(
        json::string_at(pod, "metadata", "annotations", kube::names::hived::kSchedulingSpec),
        kSpecValuesMax);
    if (spec && json::at(*spec, "affinityGroup").is_object()) return true;
  }
  return false;
}

json::Value roles_value(const JobIndex::Entry& entry) {
  std::map<std::string, Role> roles;
  for (const auto& [name, task] : entry.tasks) {
    Role& role = roles[task.role];
    ++role.tasks;
    role.gpus = task.gpus;
    role.cpu_milli = task.cpu_milli;
    role.memory = task.memory;
  }
  json::Array list;
  for (const auto& [name, role] : roles)
    list.push_back({{"name", name.empty() ? "task" : name},
                    {"tasks", role.tasks},
                    {"min", role.tasks},
                    {"gpus", role.gpus},
                    {"cpuMilli", role.cpu_milli},
                    {"memoryBytes", role.memory}});
  return list;
}

std::string image_of(const json::Value& value, int depth) {
  if (depth > 8) return "";
  if (value.is_object()) {
    if (const json::Value& image = json::at(value, "image"); image.is_string())
      return json::text(image);
    for (const auto& [key, child] : value.get_object()) {
      // What prepares a pod is not what it runs.
      if (key == "initContainers") continue;
      if (std::string found = image_of(child, depth + 1); !found.empty()) return found;
    }
  }
  for (const json::Value& child : json::as_array(value)) {
    if (std::string found = image_of(child, depth + 1); !found.empty()) return found;
  }
  return "";
}

class JobSource final : public Source {
 public:
  JobSource(World& world, User user, VisiblePtr visible, std::string id)
      : world_(world), user_(std::move(user)), visible_(std::move(visible)), id_(std::move(id)) {}
  std::uint64_t version() override {
    const JobIndex::Entry* entry = world_.jobs.find(id_);
    if (entry == nullptr) return 0;
    // Why it waits depends on others, too.
    const bool waits = world_.jobs.table().keys(entry->slot).state == State::kWaiting;
    if (waits) world_.forecasts.want();
    return turns_.version(
        waits, waits ? world_.jobs.version() + world_.forecasts.version() : entry->version);
  }
  bool gone() override { return world_.jobs.find(id_) == nullptr; }
  [[nodiscard]] bool windowed() const override { return false; }
  std::string value() override {
    const JobIndex::Entry* entry = world_.jobs.find(id_);
    return entry == nullptr ? "null" : job_detail(world_, user_, *visible_, *entry);
  }

 private:
  World& world_;
  User user_;
  VisiblePtr visible_;
  std::string id_;
  Turns turns_;
};

}  // namespace

std::string job_detail(World& world,
                       const User& user,
                       const Visible& visible,
                       const JobIndex::Entry& entry) {
  const Keys& keys = world.jobs.table().keys(entry.slot);
  const bool ended = keys.ended != 0 || keys.state == State::kSucceeded ||
                     keys.state == State::kFailed || keys.state == State::kStopped;
  std::int64_t events = 0;
  for (const auto& [at, event] : world.events.all()) {
    if (world.jobs.of_uid(event.uid) == &entry) ++events;
  }
  const bool pai = entry.facts.kind == JobKind::kOpenPai;
  const bool own =
      user.admin || (pai ? entry.facts.user == user.name : visible.may_change(entry.facts.ns));
  const bool can_suspend =
      !pai && entry.facts.kind != JobKind::kPod && entry.facts.kind != JobKind::kPodGroup;
  json::Object detail{
      {"namespace", entry.facts.ns},
      {"debugId", entry.facts.uid},
      {"description",
       entry.object ? json::text_at(*entry.object, "metadata", "annotations", "description") : ""},
      {"image", entry.object ? image_of(json::at(*entry.object, "spec"), 0) : ""},
      {"roles", roles_value(entry)},
      {"gang", starts_whole(entry)},
      // Containers that start again in their pod are no attempts of the job.
      {"attempts", 1 + keys.retries_platform + (pai ? entry.facts.retries_user : 0)},
      {"wait", wait_value(world, visible, entry)},
      {"failure", failure_value(world, entry)},
      {"events", events},
      {"may",
       {{"stop", own && !ended},
        {"suspend", own && !ended && can_suspend && keys.state != State::kSuspended},
        {"resume", own && keys.state == State::kSuspended},
        {"tag", own},
        {"priority", false},
        {"exec", own && keys.tasks_running > 0}}}};
  const std::string rest = json::dump(detail);
  return R"({"row":)" + row_text(world, entry) + "," + rest.substr(1);
}

SourcePtr job_topic(World& world, const User& user, VisiblePtr visible, const std::string& id) {
  return std::make_shared<JobSource>(world, user, std::move(visible), id);
}

}  // namespace muster::portal
