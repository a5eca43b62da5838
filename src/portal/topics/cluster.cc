/// Topics `counts`, `nodes` and `events`.
#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "json/text.h"
#include "portal/jobs/rows.h"
#include "portal/topics/node_row.h"
#include "portal/topics/topics.h"

namespace muster::portal {
namespace {

json::Value tally(const std::array<std::int32_t, kStates>& counts) {
  json::Object tally;
  for (std::size_t i = 0; i < kStates; ++i) {
    if (counts[i] != 0) tally[state_name(static_cast<State>(i))] = counts[i];
  }
  return tally;
}

class CountsSource final : public Source {
 public:
  CountsSource(World& world, const User& user, const VisiblePtr& visible)
      : world_(world), shared_as_("counts|" + user.name + "|" + JobQuery{}.key(*visible)) {
    all_ = world.jobs.table().view({}, *visible);
    JobQuery own;
    own.users = {user.name};
    mine_ = world.jobs.table().view(own, *visible);
  }
  std::uint64_t version() override {
    return world_.tally.version() + all_->version() + mine_->version();
  }
  [[nodiscard]] std::string shared_as() const override { return shared_as_; }
  [[nodiscard]] bool windowed() const override { return false; }

  std::string value() override {
    // The clock alone is no change.
    json::Object value{{"at", world_.now() / 1000 * 1000}, {"all", tally(all_->counts())}};
    add_mine(value);
    for (const auto& [key, sum] : world_.tally.sums()) value[key] = sum;
    return json::dump(value);
  }

 private:
  void add_mine(json::Object& value) const {
    const Table& table = world_.jobs.table();
    const Millis day_ago = world_.now() - 24 * 3600 * 1000LL;
    std::array<std::int32_t, kStates> counts{};
    std::int64_t gpus = 0;
    Millis oldest = 0;
    for (const Slot slot : mine_->order()) {
      const Keys& keys = table.keys(slot);
      if (keys.ended != 0 && keys.ended < day_ago) continue;
      ++counts[static_cast<std::size_t>(keys.state)];
      if (keys.state == State::kRunning) gpus += keys.gpus;
      if (keys.state == State::kWaiting && (oldest == 0 || keys.submitted < oldest))
        oldest = keys.submitted;
    }
    value["mine"] = tally(counts);
    value["mineGpus"] = gpus;
    value["mineLongestWait"] =
        oldest == 0 ? json::Value(nullptr) : json::Value(world_.now() / 1000 * 1000 - oldest);
  }

  World& world_;
  std::string shared_as_;
  ViewPtr all_, mine_;
};

struct NodeQuery {
  std::string text, sort = "name";
  std::vector<std::string> states, models, racks, vcs;
  int free = 0;
  bool descending = false;
};

class NodesSource final : public Source {
 public:
  NodesSource(World& world, VisiblePtr visible, NodeQuery query)
      : world_(world), visible_(std::move(visible)), query_(std::move(query)) {}
  std::uint64_t version() override { return world_.jobs.version() + world_.nodes.version(); }
  [[nodiscard]] bool windowed() const override { return true; }

  ShownPage page(Window window) override {
    struct Found {
      const NodeFacts* node;
      int used;
    };
    std::vector<Found> found;
    std::map<std::string_view, int> counts;
    for (const auto& [name, node] : world_.nodes.all()) {
      int used = 0;
      for (const auto& [pod, on] : world_.jobs.on_node(name)) used += on.task->gpus;
      if (!matches(node, used)) continue;
      ++counts[node_state_name(node.state)];
      if (!query_.states.empty() && !has(query_.states, node_state_name(node.state))) continue;
      found.push_back({&node, used});
    }
    const auto less = [&](const Found& a, const Found& b) {
      if (query_.sort == "state" && a.node->state != b.node->state)
        return a.node->state < b.node->state;
      if (query_.sort == "model" && a.node->model != b.node->model)
        return a.node->model < b.node->model;
      if (query_.sort == "rack" && a.node->rack != b.node->rack) return a.node->rack < b.node->rack;
      if (query_.sort == "gpus" && a.node->gpus != b.node->gpus) return a.node->gpus < b.node->gpus;
      if (query_.sort == "used" && a.used != b.used) return a.used < b.used;
      if (query_.sort == "free" && a.node->gpus - a.used != b.node->gpus - b.used)
        return a.node->gpus - a.used < b.node->gpus - b.used;
      return a.node->name < b.node->name;
    };
    std::stable_sort(found.begin(), found.end(), [&](const Found& a, const Found& b) {
      return query_.descending ? less(b, a) : less(a, b);
    });
    ShownPage shown;
    shown.total = found.size();
    shown.window.end = std::min(window.end, shown.total);
    shown.window.first = std::min(window.first, shown.window.end);
    shown.extra = R"("counts":{)";
    for (const auto& [state, count] : counts)
      shown.extra +=
          fmt::format("{}\"{}\":{}", shown.extra.ends_with('{') ? "" : ",", state, count);
    shown.extra += '}';
    texts_.clear();
    for (std::size_t i = shown.window.first; i < shown.window.end; ++i) {
      texts_.push_back(json::dump(node_row(world_, *visible_, *found[i].node)));
      shown.rows.push_back(
          {std::hash<std::string>()(texts_.back()), found[i].node->name, texts_.size() - 1});
    }
    return shown;
  }
  void append(std::string& out, const ShownRow& row) override { out += texts_[row.place]; }

 private:
  static bool has(const std::vector<std::string>& list, std::string_view word) {
    return std::find(list.begin(), list.end(), word) != list.end();
  }
  [[nodiscard]] bool matches(const NodeFacts& node, int used) const {
    if (!query_.text.empty() && to_lower(node.name).find(query_.text) == std::string::npos)
      return false;
    if (!query_.models.empty() && !has(query_.models, node.model)) return false;
    if (!query_.racks.empty() && !has(query_.racks, node.rack)) return false;
    return query_.free <= 0 || node.gpus - used >= query_.free;
  }

  World& world_;
  VisiblePtr visible_;
  NodeQuery query_;
  std::vector<std::string> texts_;  // of the page made last
};

struct EventQuery {
  std::string text, job, node;
  std::vector<std::string> types;
  Millis from = 0;
};

class EventsSource final : public Source {
 public:
  EventsSource(World& world, VisiblePtr visible, EventQuery query)
      : world_(world), visible_(std::move(visible)), query_(std::move(query)) {}
  std::uint64_t version() override { return world_.events.version(); }
  [[nodiscard]] bool windowed() const override { return true; }

  ShownPage page(Window window) override {
    ShownPage shown;
    found_.clear();
    const auto& all = world_.events.all();
    for (auto at = all.rbegin(); at != all.rend(); ++at) {
      if (query_.from != 0 && at->second.at < query_.from) break;
      if (matches(at->second)) found_.push_back(&at->second);
    }
    shown.total = found_.size();
    shown.window.end = std::min(window.end, shown.total);
    shown.window.first = std::min(window.first, shown.window.end);
    shown.extra = R"("counts":{})";
    for (std::size_t i = shown.window.first; i < shown.window.end; ++i)
      shown.rows.push_back({found_[i]->version, found_[i]->id, i});
    return shown;
  }

  void append(std::string& out, const ShownRow& row) override {
    const EventFacts& event = *found_[row.place];
    const JobIndex::Entry* job = world_.jobs.of_uid(event.uid);
    json::append(
        out,
        json::Value{
            {"id", event.id},
            {"at", event.at},
            {"first", event.first},
            {"count", event.count},
            {"type", event.type},
            {"reason", event.reason},
            {"message", event.message},
            {"object",
             fmt::format(
                 "{} {}{}{}", event.kind, event.ns, event.ns.empty() ? "" : "/", event.name)},
            {"job", job == nullptr ? json::Value(nullptr) : json::Value(job->facts.id)},
            {"node", event.node},
            {"source", event.source}});
  }

 private:
  [[nodiscard]] bool matches(const EventFacts& event) const {
    if (!event.ns.empty() && !visible_->sees(event.ns)) return false;
    if (event.ns.empty() && !visible_->all && event.kind != "Node") return false;
    if (!query_.types.empty() &&
        std::find(query_.types.begin(), query_.types.end(), event.type) == query_.types.end())
      return false;
    if (!query_.node.empty() && event.node != query_.node) return false;
    if (!query_.job.empty()) {
      const JobIndex::Entry* job = world_.jobs.of_uid(event.uid);
      if (job == nullptr || job->facts.id != query_.job) return false;
    }
    if (query_.text.empty()) return true;
    return to_lower(event.message).find(query_.text) != std::string::npos ||
           to_lower(event.reason).find(query_.text) != std::string::npos ||
           to_lower(event.name).find(query_.text) != std::string::npos;
  }

  World& world_;
  VisiblePtr visible_;
  EventQuery query_;
  std::vector<const EventFacts*> found_;
};

std::vector<std::string> texts_of(const json::Value& value) {
  if (value.is_string()) return {json::text(value)};
  std::vector<std::string> texts;
  for (const json::Value& one : json::as_array(value)) texts.push_back(json::text(one));
  return texts;
}

std::string first_of(const json::Value& value) {
  if (value.is_int64()) return std::to_string(value.get_int64());
  const std::vector<std::string> texts = texts_of(value);
  return texts.empty() ? "" : texts.front();
}

}  // namespace

SourcePtr counts_topic(World& world, const User& user, VisiblePtr visible) {
  return std::make_shared<CountsSource>(world, user, visible);
}

Result<SourcePtr> nodes_topic(World& world, VisiblePtr visible, const json::Value& query) {
  NodeQuery parsed;
  for (const auto& [key, value] : json::as_object(query)) {
    if (key == "q")
      parsed.text = to_lower(first_of(value));
    else if (key == "state")
      parsed.states = texts_of(value);
    else if (key == "model")
      parsed.models = texts_of(value);
    else if (key == "rack")
      parsed.racks = texts_of(value);
    else if (key == "vc")
      parsed.vcs = texts_of(value);
    else if (key == "free")
      parsed.free = static_cast<int>(parse_int(first_of(value)).value_or(0));
    else if (key == "sort") {
      const std::string word = first_of(value);
      parsed.descending = word.starts_with('-');
      parsed.sort = word.substr(parsed.descending ? 1 : 0);
    } else {
      return fail(
          Code::kBadRequest,
          fmt::format(
              "\"{}\" is not a filter of nodes; there are q, state, model, rack, vc, free and sort",
              std::string_view(key)));
    }
  }
  return SourcePtr(std::make_shared<NodesSource>(world, std::move(visible), std::move(parsed)));
}

Result<SourcePtr> events_topic(World& world, VisiblePtr visible, const json::Value& query) {
  EventQuery parsed;
  for (const auto& [key, value] : json::as_object(query)) {
    if (key == "q")
      parsed.text = to_lower(first_of(value));
    else if (key == "type")
      parsed.types = texts_of(value);
    else if (key == "job")
      parsed.job = first_of(value);
    else if (key == "node")
      parsed.node = first_of(value);
    else if (key == "from")
      parsed.from = parse_int(first_of(value)).value_or(0);
    else
      return fail(
          Code::kBadRequest,
          fmt::format("\"{}\" is not a filter of events; there are q, type, job, node and from",
                      std::string_view(key)));
  }
  return SourcePtr(std::make_shared<EventsSource>(world, std::move(visible), std::move(parsed)));
}

}  // namespace muster::portal
