/// Topics `jobs` and `tasks/ID`.
#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "json/text.h"
#include "portal/jobs/rows.h"
#include "portal/topics/topics.h"
#include "portal/topics/waiting.h"

namespace muster::portal {
namespace {

class JobsSource final : public Source {
 public:
  JobsSource(World& world, JobQuery query, VisiblePtr visible)
      : world_(world),
        query_(std::move(query)),
        shared_as_(fmt::format("jobs|{}|{}|{}|{}",
                               query_.states,
                               query_.descending,
                               static_cast<int>(query_.group),
                               query_.key(*visible))),
        view_(world.jobs.table().view(query_, *visible)) {}

  std::uint64_t version() override {
    const bool waits = view_->counts()[static_cast<std::size_t>(State::kWaiting)] > 0;
    if (waits) world_.forecasts.want();
    if (waits && query_.sort == SortField::kStart) world_.starts.want();
    return turns_.version(waits, view_->version() + (waits ? world_.forecasts.version() : 0));
  }
  [[nodiscard]] std::string shared_as() const override { return shared_as_; }
  [[nodiscard]] bool windowed() const override { return true; }

  ShownPage page(Window window) override {
    const Table& table = world_.jobs.table();
    const Page found = table.page(*view_, query_, window);
    ShownPage shown;
    shown.total = found.total;
    shown.window = found.window;
    shown.extra = R"("counts":)" + counts_json(view_->counts());
    if (query_.group != GroupField::kNone) add_groups(shown.extra);
    shown.rows.reserve(found.rows.size());
    const Millis now = world_.now();
    for (const Slot slot : found.rows) {
      std::uint64_t version = table.version(slot);
      if (const answers::Forecast* forecast = forecast_at(slot); forecast != nullptr)
        version ^= mark_of(told_of(*forecast), now);
      shown.rows.push_back({version, table.texts(slot).id, slot});
    }
    return shown;
  }
  void append(std::string& out, const ShownRow& row) override {
    const Slot slot = static_cast<Slot>(row.place);
    const answers::Forecast* forecast = forecast_at(slot);
    append_row(out, world_.jobs.table(), slot, forecast ? told_of(*forecast) : Told{});
  }

 private:
  [[nodiscard]] const answers::Forecast* forecast_at(Slot slot) const {
    if (world_.jobs.table().keys(slot).state != State::kWaiting) return nullptr;
    const JobIndex::Entry* entry = world_.jobs.at(slot);
    return entry == nullptr ? nullptr : forecast_of(world_, *entry);
  }

  void add_groups(std::string& out) {
    out += R"(,"groups":[)";
    bool first = true;
    for (const GroupRow& group : world_.jobs.table().groups(*view_, query_)) {
      out += first ? R"({"value":)" : R"(,{"value":)";
      first = false;
      json::append_string(out, group.value);
      out += fmt::format(R"(,"jobs":{},"gpus":{},"states":{}}})",
                         group.jobs,
                         group.gpus,
                         counts_json(group.states));
    }
    out += ']';
  }

  World& world_;
  JobQuery query_;
  std::string shared_as_;
  ViewPtr view_;
  Turns turns_;
};

struct TaskQuery {
  std::vector<std::string> states, nodes;
  std::string text;
  std::string sort = "id";
  bool descending = false;
};

class TasksSource final : public Source {
 public:
  TasksSource(World& world, std::string id, TaskQuery query)
      : world_(world), id_(std::move(id)), query_(std::move(query)) {}

  std::uint64_t version() override {
    const JobIndex::Entry* entry = world_.jobs.find(id_);
    return entry == nullptr ? 0 : entry->version;
  }
  bool gone() override { return world_.jobs.find(id_) == nullptr; }
  [[nodiscard]] std::string shared_as() const override {
    return fmt::format("tasks|{}|{}|{}|{}|{}|{}",
                       id_,
                       join(query_.states, ","),
                       join(query_.nodes, ","),
                       query_.sort,
                       query_.descending,
                       query_.text);
  }
  [[nodiscard]] bool windowed() const override { return true; }

  ShownPage page(Window window) override {
    ShownPage shown;
    found_.clear();
    const JobIndex::Entry* entry = world_.jobs.find(id_);
    if (entry == nullptr) return shown;
    std::array<int, kTaskStates> counts{};
    for (const auto& [name, task] : entry->tasks) {
      ++counts[static_cast<std::size_t>(task.state == TaskState::kStarting ? TaskState::kWaiting
                                                                           : task.state)];
      if (matches(task)) found_.push_back(&task);
    }
    std::sort(found_.begin(), found_.end(), [&](const TaskFacts* a, const TaskFacts* b) {
      return query_.descending ? less(*b, *a) : less(*a, *b);
    });
    shown.total = found_.size();
    shown.window.end = std::min(window.end, shown.total);
    shown.window.first = std::min(window.first, shown.window.end);
    shown.extra = R"("counts":{)";
    bool first = true;
    for (std::size_t i = 0; i < kTaskStates; ++i) {
      if (counts[i] == 0) continue;
      shown.extra += fmt::format(
          "{}\"{}\":{}", first ? "" : ",", task_state_name(static_cast<TaskState>(i)), counts[i]);
      first = false;
    }
    shown.extra += '}';
    for (std::size_t i = shown.window.first; i < shown.window.end; ++i)
      shown.rows.push_back({found_[i]->version, task_id(*found_[i]), i});
    return shown;
  }
  void append(std::string& out, const ShownRow& row) override {
    append_task(out, *found_[row.place]);
  }

 private:
  [[nodiscard]] bool matches(const TaskFacts& task) const {
    const std::string_view state =
        task.state == TaskState::kStarting ? "WAITING" : task_state_name(task.state);
    if (!query_.states.empty() &&
        std::find(query_.states.begin(), query_.states.end(), state) == query_.states.end())
      return false;
    if (!query_.nodes.empty() &&
        std::find(query_.nodes.begin(), query_.nodes.end(), task.node) == query_.nodes.end())
      return false;
    return query_.text.empty() || to_lower(task.pod).find(query_.text) != std::string::npos ||
           to_lower(task.node).find(query_.text) != std::string::npos ||
           to_lower(task_id(task)).find(query_.text) != std::string::npos;
  }
  [[nodiscard]] bool less(const TaskFacts& a, const TaskFacts& b) const {
    if (query_.sort == "state" && a.state != b.state) return a.state < b.state;
    if (query_.sort == "node" && a.node != b.node) return a.node < b.node;
    if (query_.sort == "started" && a.started != b.started) return a.started < b.started;
    if (query_.sort == "retries" && a.restarts != b.restarts) return a.restarts < b.restarts;
    if (a.role != b.role) return a.role < b.role;
    if (a.index != b.index) return a.index < b.index;
    return a.pod < b.pod;
  }

  World& world_;
  std::string id_;
  TaskQuery query_;
  std::vector<const TaskFacts*> found_;  // of the page made last
};

Result<std::vector<std::string>> texts_of(std::string_view key, const json::Value& value) {
  std::vector<std::string> texts;
  if (value.is_string()) return std::vector<std::string>{json::text(value)};
  for (const json::Value& one : json::as_array(value)) {
    if (!one.is_string())
      return fail(Code::kBadRequest, fmt::format("{}: wanted a list of texts", key));
    texts.push_back(json::text(one));
  }
  return texts;
}

}  // namespace

Result<SourcePtr> jobs_topic(World& world,
                             const User& user,
                             VisiblePtr visible,
                             const json::Value& query) {
  auto parsed = parse_job_query(query, user.name);
  if (!parsed) return fail(parsed.error());
  return SourcePtr(std::make_shared<JobsSource>(world, std::move(*parsed), std::move(visible)));
}

Result<SourcePtr> tasks_topic(World& world, const std::string& id, const json::Value& query) {
  TaskQuery parsed;
  for (const auto& [key, value] : json::as_object(query)) {
    auto list = texts_of(key, value);
    if (!list) return fail(list.error());
    const std::string first = list->empty() ? "" : list->front();
    if (key == "state") {
      parsed.states = std::move(*list);
    } else if (key == "node") {
      parsed.nodes = std::move(*list);
    } else if (key == "q") {
      parsed.text = to_lower(first);
    } else if (key == "sort") {
      parsed.descending = first.starts_with('-');
      parsed.sort = first.substr(parsed.descending ? 1 : 0);
    } else if (key != "attempt") {
      return fail(Code::kBadRequest,
                  fmt::format("\"{}\" is not a filter of tasks; there are state, node, q and sort",
                              std::string_view(key)));
    }
  }
  return SourcePtr(std::make_shared<TasksSource>(world, id, std::move(parsed)));
}

}  // namespace muster::portal
