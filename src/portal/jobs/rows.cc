#include "portal/jobs/rows.h"

#include <algorithm>

#include "json/text.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::portal {
namespace {

struct Sums {
  int waiting = 0, starting = 0, running = 0, stopping = 0, succeeded = 0, failed = 0;
  std::int32_t gpus = 0, restarts = 0;
  Millis first_start = 0, last_end = 0;
  bool nominated = false, opportunistic = false;
  const TaskFacts* told = nullptr;    // a task that says why it waits
  const TaskFacts* stuck = nullptr;   // one that has a node and says why it does not run yet
  const TaskFacts* broken = nullptr;  // the first that failed
};

Sums sum_up(const std::map<std::string, TaskFacts>& tasks) {
  Sums sums;
  for (const auto& [name, task] : tasks) {
    sums.gpus += task.gpus;
    sums.restarts += task.restarts;
    sums.nominated |= task.nominated;
    sums.opportunistic |= task.opportunistic;
    if (task.started != 0 && (sums.first_start == 0 || task.started < sums.first_start))
      sums.first_start = task.started;
    sums.last_end = std::max(sums.last_end, task.ended);
    switch (task.state) {
      case TaskState::kWaiting:
        ++sums.waiting;
        if (sums.told == nullptr && !task.reason.empty()) sums.told = &task;
        break;
      case TaskState::kStarting:
        ++sums.starting;
        if (sums.stuck == nullptr && !task.reason.empty()) sums.stuck = &task;
        break;
      case TaskState::kRunning:
        ++sums.running;
        break;
      case TaskState::kStopping:
        ++sums.stopping;
        break;
      case TaskState::kSucceeded:
        ++sums.succeeded;
        break;
      case TaskState::kFailed:
        ++sums.failed;
        if (sums.broken == nullptr || (task.ended != 0 && task.ended < sums.broken->ended))
          sums.broken = &task;
        break;
    }
  }
  return sums;
}

State state_of(const JobFacts& facts, const Sums& sums, bool has_object) {
  if (facts.final_state && *facts.final_state != State::kStopping) return *facts.final_state;
  if (facts.deleting || facts.final_state || !has_object) {
    const bool ended =
        !has_object && sums.running + sums.waiting + sums.starting + sums.stopping == 0;
    if (!ended) {
      const bool bare = !has_object && !facts.deleting && sums.stopping == 0;
      if (!bare) return State::kStopping;
    }
  }
  if (facts.suspended) return State::kSuspended;
  if (sums.running > 0) return State::kRunning;
  const int alive = sums.waiting + sums.starting + sums.stopping;
  if (facts.kind == JobKind::kPod || facts.kind == JobKind::kPodGroup || !has_object) {
    if (alive == 0 && sums.failed > 0) return State::kFailed;
    if (alive == 0 && sums.succeeded > 0) return State::kSucceeded;
  }
  if (alive == 0 && sums.stopping > 0) return State::kStopping;
  return State::kWaiting;
}

Phase phase_of(const JobFacts& facts, const Sums& sums, State state) {
  if (state == State::kRunning) return Phase::kRunning;
  if (state != State::kWaiting) return Phase::kNone;
  if (sums.starting > 0 && sums.waiting == 0) return Phase::kStarting;
  if (sums.nominated) return Phase::kMakingRoom;
  return facts.retries_platform > 0 ? Phase::kRequeued : Phase::kQueued;
}

/// What the group says goes before what its pods say: it is about all of them. Once they have nodes
/// it is what keeps them from running there.
WaitText wait_of(const json::Value* group, const Sums& sums, Phase phase) {
  WaitText wait;
  if (phase == Phase::kStarting) {
    if (sums.stuck == nullptr) return wait;
    wait.reason = "Starting";
    wait.text =
        sums.starting == 1 ? sums.stuck->reason : task_id(*sums.stuck) + ": " + sums.stuck->reason;
    return wait;
  }
  if (group != nullptr) {
    const json::Value* newest = nullptr;
    for (const json::Value& condition : json::array_at(*group, "status", "conditions")) {
      if (json::string_at(condition, "status") != "True") continue;
      const std::string_view type = json::string_at(condition, "type");
      if (type == "Unschedulable") newest = &condition;
      if (type == "Scheduled") newest = nullptr;
    }
    if (newest != nullptr) {
      wait.reason = json::text_at(*newest, "reason");
      wait.text = json::text_at(*newest, "message");
    }
  }
  if (wait.text.empty() && sums.told != nullptr) {
    wait.reason = "Unschedulable";
    wait.text = sums.told->reason;
  }
  return wait;
}

void read_exit(RowParts& parts, const JobFacts& facts, const Sums& sums) {
  Texts& texts = parts.texts;
  texts.has_exit = facts.has_exit;
  texts.exit_code = facts.exit_code;
  texts.exit_phrase = facts.exit_phrase;
  if (texts.has_exit || parts.keys.state != State::kFailed) return;
  if (sums.broken != nullptr) {
    texts.has_exit = sums.broken->has_exit;
    texts.exit_code = sums.broken->exit_code;
    texts.exit_phrase =
        !sums.broken->exit_phrase.empty() ? sums.broken->exit_phrase : sums.broken->reason;
  }
  if (texts.exit_phrase.empty()) texts.exit_phrase = facts.failure.substr(0, 200);
}

}  // namespace

RowParts make_row(const RowOf& of, Words& words) {
  const auto& [facts, object, group, tasks, class_number] = of;
  RowParts parts;
  const Sums sums = sum_up(tasks);
  Keys& keys = parts.keys;
  keys.kind = facts.kind;
  keys.state = state_of(facts, sums, object != nullptr);
  keys.phase = phase_of(facts, sums, keys.state);
  keys.oppo = sums.opportunistic || facts.cell_priority.value_or(0) < 0;
  keys.submitted = facts.submitted;
  keys.started =
      facts.started != 0 && facts.kind != JobKind::kJob ? facts.started : sums.first_start;
  if (keys.started == 0 && keys.state != State::kWaiting) keys.started = facts.started;
  if (keys.state == State::kWaiting) keys.started = 0;
  const bool ended = keys.state == State::kSucceeded || keys.state == State::kFailed ||
                     keys.state == State::kStopped;
  if (ended) keys.ended = facts.ended != 0 ? facts.ended : sums.last_end;
  keys.ns = words.number(facts.ns);
  keys.user = words.number(facts.user);
  std::string queue = facts.queue, prio_class = facts.prio_class;
  if (queue.empty() && group != nullptr) queue = json::text_at(*group, "spec", "queue");
  // Whoever names neither queue nor virtual cluster waits in the queue that always is.
  if (queue.empty() && facts.vc.empty()) queue = "default";
  if (prio_class.empty() && !tasks.empty()) prio_class = tasks.begin()->second.prio_class;
  keys.vc = words.number(facts.vc);
  keys.queue = words.number(queue);
  keys.prio_class = words.number(prio_class);
  // What has no pods yet is as urgent as they will be.
  keys.prio = facts.cell_priority ? *facts.cell_priority
              : tasks.empty()     ? class_number
                                  : tasks.begin()->second.prio;
  keys.gpus = facts.gpus > 0 ? facts.gpus : sums.gpus;
  keys.tasks_running = sums.running;
  keys.tasks_total = std::max(facts.tasks, static_cast<std::int32_t>(tasks.size()));
  if (facts.tasks > 0 && facts.kind != JobKind::kPodGroup) keys.tasks_total = facts.tasks;
  keys.retries_user = std::max(facts.retries_user, sums.restarts);
  keys.retries_platform = facts.retries_platform;
  parts.texts.id = facts.id;
  parts.texts.name = facts.name;
  parts.texts.tags = facts.tags;
  if (keys.state == State::kWaiting) parts.texts.wait = wait_of(group, sums, keys.phase);
  read_exit(parts, facts, sums);
  return parts;
}

void append_millis(std::string& out, Millis time) {
  if (time == 0)
    out += "null";
  else
    out += std::to_string(time);
}

namespace {

void add_text(std::string& out, std::string_view before, std::string_view text) {
  out += before;
  json::append_string(out, text);
}

void add_number(std::string& out, std::string_view before, std::int64_t number) {
  out += before;
  out += std::to_string(number);
}

void add_exit(
    std::string& out, bool failed, bool has_code, std::int64_t code, std::string_view phrase) {
  out += R"(,"exit":)";
  if (!failed && !has_code) {
    out += "null";
    return;
  }
  out += R"({"code":)";
  out += has_code ? std::to_string(code) : "null";
  add_text(out, R"(,"phrase":)", phrase);
  out += '}';
}

}  // namespace

void append_row(std::string& out, const Table& table, Slot slot, const Told& told) {
  const Keys& keys = table.keys(slot);
  const Texts& texts = table.texts(slot);
  const Words& words = table.words();
  add_text(out, R"({"id":)", texts.id);
  add_text(out, R"(,"kind":)", kind_name(keys.kind));
  add_text(out, R"(,"name":)", texts.name);
  add_text(out, R"(,"user":)", words.text(keys.user));
  add_text(out, R"(,"vc":)", words.text(keys.vc));
  add_text(out, R"(,"queue":)", words.text(keys.queue));
  add_text(out, R"(,"prio":{"class":)", words.text(keys.prio_class));
  add_number(out, R"(,"number":)", keys.prio);
  add_text(out, R"(},"state":)", state_name(keys.state));
  out += R"(,"phase":)";
  if (keys.phase == Phase::kNone)
    out += "null";
  else
    json::append_string(out, phase_name(keys.phase));
  add_number(out, R"(,"gpus":)", keys.gpus);
  add_number(out, R"(,"tasks":{"running":)", keys.tasks_running);
  add_number(out, R"(,"total":)", keys.tasks_total);
  add_number(out, R"(},"retries":{"user":)", keys.retries_user);
  add_number(out, R"(,"platform":)", keys.retries_platform);
  add_number(out, R"(},"submitted":)", keys.submitted);
  out += R"(,"started":)";
  append_millis(out, keys.started);
  out += R"(,"ended":)";
  append_millis(out, keys.ended);
  out += R"(,"tags":[)";
  for (std::size_t i = 0; i < texts.tags.size(); ++i)
    add_text(out, i == 0 ? "" : ",", texts.tags[i]);
  out += ']';
  add_exit(out, keys.state == State::kFailed, texts.has_exit, texts.exit_code, texts.exit_phrase);
  out += keys.oppo ? R"(,"oppo":true,"wait":)" : R"(,"oppo":false,"wait":)";
  // Its place may be foretold before anybody has written down why it waits.
  if (keys.state != State::kWaiting || (texts.wait.text.empty() && told.place == 0)) {
    out += "null}";
    return;
  }
  add_text(out, R"({"reason":)", texts.wait.reason);
  add_text(out, R"(,"text":)", texts.wait.text);
  out += R"(,"place":)";
  out += told.place > 0 ? std::to_string(told.place) : "null";
  add_number(out, R"(,"ahead":)", std::max(0, told.place - 1));
  out += R"(,"start":)";
  append_millis(out, told.start);
  out += R"(,"startLow":)";
  append_millis(out, told.low);
  out += R"(,"startHigh":)";
  append_millis(out, told.high);
  add_text(out, R"(,"basis":)", answers::basis_name(told.basis));
  out += "}}";
}

std::string task_id(const TaskFacts& task) {
  return task.role.empty() ? task.pod : task.role + "-" + std::to_string(task.index);
}

void append_task(std::string& out, const TaskFacts& task) {
  add_text(out, R"({"id":)", task_id(task));
  add_text(out, R"(,"role":)", task.role);
  add_number(out, R"(,"index":)", task.index);
  // States of tasks are told in the words of jobs; one that starts waits.
  const std::string_view state =
      task.state == TaskState::kStarting ? "WAITING" : task_state_name(task.state);
  add_text(out, R"(,"state":)", state);
  add_text(out, R"(,"node":)", task.node);
  out += R"(,"gpus":[)";
  for (std::size_t i = 0; i < task.devices.size(); ++i)
    add_number(out, i == 0 ? "" : ",", task.devices[i]);
  add_number(out, R"(],"gpuCount":)", task.gpus);
  add_text(out, R"(,"ip":)", task.ip);
  add_number(out, R"(,"ports":{},"retries":)", task.restarts);
  add_exit(out, task.state == TaskState::kFailed, task.has_exit, task.exit_code, task.exit_phrase);
  out += R"(,"started":)";
  append_millis(out, task.started);
  out += R"(,"ended":)";
  append_millis(out, task.ended);
  add_text(out, R"(,"pod":)", task.pod);
  add_text(out, R"(,"reason":)", task.reason);
  out += R"(,"containers":[)";
  for (std::size_t i = 0; i < task.containers.size(); ++i)
    add_text(out, i == 0 ? "" : ",", task.containers[i]);
  out += R"(],"attempt":0})";
}

}  // namespace muster::portal
