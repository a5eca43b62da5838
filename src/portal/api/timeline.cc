/// jobs/ID/timeline: the story of a job, attempt by attempt: what its object and pods say now, what
/// OpenPAI keeps of earlier attempts, and who evicted whom.
#include "portal/api/timeline.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/strings.h"
#include "portal/jobs/rows.h"

namespace muster::portal {
namespace {

constexpr std::size_t kMarksMax = 200, kLanesMax = 200;

json::Value segment(std::string_view kind, Millis from, Millis to, std::string text) {
  return {{"kind", kind},
          {"from", from},
          {"to", to == 0 ? json::Value(nullptr) : json::Value(to)},
          {"text", std::move(text)}};
}

json::Value mark(Millis at, std::string_view kind, std::string text, json::Value by = nullptr) {
  return {{"at", at}, {"kind", kind}, {"text", std::move(text)}, {"by", std::move(by)}};
}

}  // namespace

Task<std::vector<Former>> former_attempts(World& world, User user, std::string id) {
  std::vector<Former> formers;
  if (!world.options.rest_call) co_return formers;
  const auto answer = co_await world.options.rest_call(
      user, "GET", fmt::format("/api/v2/jobs/{}/job-attempts", percent_encode(id)), "", "");
  if (!answer || answer->status >= 300) co_return formers;
  const auto list = json::parse(answer->body);
  if (!list) co_return formers;
  Millis next = 0;  // when the attempt after it began
  for (const json::Value& attempt : json::as_array(*list)) {
    const Millis after = std::exchange(next, json::int_at(attempt, "attemptStartedTime"));
    if (json::bool_at(attempt, "isLatest")) continue;
    Former former;
    former.created = next;
    former.launched = json::int_at(attempt, "appLaunchedTime");
    former.completed = json::int_at(attempt, "attemptCompletedTime");
    // One that was followed at once was not seen completed.
    if (former.completed == 0) former.completed = after;
    if (const json::Value& code = json::at(attempt, "exitCode"); code.is_number())
      former.end =
          fmt::format("code {} {}", json::as_int(code), json::string_at(attempt, "exitPhrase"));
    std::set<std::string> nodes;
    for (const auto& role : json::object_at(attempt, "taskRoles")) {
      for (const json::Value& task : json::array_at(role.value(), "taskStatuses")) {
        if (std::string node = json::text_at(task, "containerNodeName"); !node.empty())
          nodes.insert(std::move(node));
      }
    }
    former.nodes = join(std::vector<std::string>(nodes.begin(), nodes.end()), ", ");
    formers.insert(formers.begin(), std::move(former));
  }
  co_return formers;
}

namespace {

struct Eviction {
  Millis at = 0;
  std::string text;
  json::Value by;  // the other job, if this user may see it
};

/// "by default/urgent-worker-0 on node b": whose pod that is.
json::Value evictor(const World& world, const Visible& visible, std::string_view message) {
  const std::size_t begin = message.find("by ");
  if (begin == std::string_view::npos) return nullptr;
  const std::string_view rest = message.substr(begin + 3);
  const std::string key(rest.substr(0, rest.find(' ')));
  const JobIndex::Entry* found = world.jobs.of_pod(key);
  if (found == nullptr) found = world.jobs.of_group(key);
  if (found == nullptr || !found->shown || !sees(visible, *found)) return nullptr;
  return json::Value(found->facts.id);
}

/// Pods that were evicted are gone; those that followed them have their names.
bool is_about(const World& world, const EventFacts& event, const JobIndex::Entry& entry) {
  return world.jobs.of_uid(event.uid) == &entry ||
         (event.kind == "Pod" && world.jobs.of_pod(event.ns + "/" + event.name) == &entry);
}

class Story {
 public:
  Story(const World& world, const Visible& visible, const JobIndex::Entry& entry)
      : world_(world),
        entry_(entry),
        keys_(world.jobs.table().keys(entry.slot)),
        texts_(world.jobs.table().texts(entry.slot)) {
    marks_.push_back(mark(keys_.submitted, "submitted", ""));
    for (const auto& [at, event] : world.events.all()) {
      if (marks_.size() > kMarksMax || !is_about(world, event, entry)) continue;
      if (event.reason == "Preempted")
        evictions_.push_back({event.at, event.message, evictor(world, visible, event.message)});
      else if (event.reason == "FailedScheduling")
        marks_.push_back(mark(event.at, "reason", event.message));
    }
  }

  json::Value tell(const std::vector<Former>& formers) {
    for (const Former& former : formers) tell_former(former);
    // What nobody keeps an attempt of is known by its event alone.
    for (const Eviction& eviction : evictions_)
      marks_.push_back(mark(eviction.at, "evicted", eviction.text, eviction.by));
    tell_present(formers.empty() ? 0 : formers.back().completed);
    return {
        {"now", world_.now()}, {"attempts", std::move(attempts_)}, {"marks", std::move(marks_)}};
  }

 private:
  void tell_former(const Former& former) {
    json::Array segments;
    const Millis queued = attempts_.empty() ? keys_.submitted : former.created;
    segments.push_back(
        segment("queued", queued, former.launched != 0 ? former.launched : former.completed, ""));
    if (former.launched != 0)
      segments.push_back(segment("running", former.launched, former.completed, former.nodes));
    attempts_.push_back({{"n", attempts_.size()},
                         {"segments", std::move(segments)},
                         {"tasks", json::Array{}},
                         {"tasksTotal", 0}});
    const auto evicted =
        std::find_if(evictions_.begin(), evictions_.end(), [&](const Eviction& one) {
          // Events say whole seconds, and a pod takes a while to leave.
          return one.at + 1000 >= former.launched && one.at <= former.completed + 1000;
        });
    if (evicted != evictions_.end()) {
      marks_.push_back(mark(former.completed,
                            "evicted",
                            fmt::format("{}; {}", evicted->text, former.end),
                            evicted->by));
      evictions_.erase(evicted);
    } else {
      marks_.push_back(mark(former.completed, "failed", former.end));
    }
    marks_.push_back(mark(former.completed, "requeued", ""));
    began_again_ = true;
  }

  void tell_present(Millis since) {
    json::Array segments, tasks;
    Millis bound = 0;
    std::set<std::string> nodes;
    for (const auto& [name, task] : entry_.tasks) {
      if (task.scheduled != 0 && (bound == 0 || task.scheduled < bound)) bound = task.scheduled;
      if (!task.node.empty()) nodes.insert(task.node);
      if (tasks.size() < kLanesMax) tasks.push_back(lane(task));
    }
    const Millis queued_until = keys_.state == State::kWaiting && bound == 0 ? 0
                                : bound != 0                                 ? bound
                                                                             : keys_.started;
    segments.push_back(
        segment("queued", std::max(since, keys_.submitted), queued_until, texts_.wait.text));
    if (bound != 0) segments.push_back(segment("starting", bound, keys_.started, ""));
    const std::vector<std::string> names(nodes.begin(), nodes.end());
    if (keys_.started != 0) {
      segments.push_back(segment("running", keys_.started, keys_.ended, join(names, ", ")));
      if (began_again_) marks_.push_back(mark(keys_.started, "resumed", ""));
    }
    if (keys_.ended != 0)
      marks_.push_back(mark(
          keys_.ended, keys_.state == State::kFailed ? "failed" : "ended", texts_.exit_phrase));
    attempts_.push_back(
        {{"n",
          attempts_.empty() ? static_cast<std::size_t>(keys_.retries_platform) : attempts_.size()},
         {"segments", std::move(segments)},
         {"tasks", std::move(tasks)},
         {"tasksTotal", entry_.tasks.size()}});
  }

  static json::Value lane(const TaskFacts& task) {
    json::Array own;
    own.push_back(segment("queued",
                          task.created,
                          task.scheduled,
                          task.state == TaskState::kWaiting ? task.reason : ""));
    if (task.scheduled != 0)
      own.push_back(segment("starting", task.scheduled, task.started, task.node));
    if (task.started != 0) own.push_back(segment("running", task.started, task.ended, task.node));
    return {{"id", task_id(task)}, {"segments", std::move(own)}};
  }

  const World& world_;
  const JobIndex::Entry& entry_;
  const Keys& keys_;
  const Texts& texts_;
  json::Array attempts_, marks_;
  std::vector<Eviction> evictions_;
  bool began_again_ = false;
};

}  // namespace

Task<Result<json::Value>> timeline_of(World& world, User user, std::string id) {
  std::vector<Former> formers;
  const auto found = co_await find_job(world, user, id);
  if (!found) co_return fail(found.error());
  const Keys& keys = world.jobs.table().keys((*found)->slot);
  if (keys.kind == JobKind::kOpenPai && keys.retries_platform + keys.retries_user > 0)
    formers = co_await former_attempts(world, user, id);
  const VisiblePtr visible = co_await world.rights.visible(user);
  // It may have gone meanwhile.
  const JobIndex::Entry* entry = world.jobs.find(id);
  if (entry == nullptr || !entry->shown) co_return fail(Code::kNotFound, "the job is gone");
  co_return Story(world, *visible, *entry).tell(formers);
}

}  // namespace muster::portal
