#include "answers/changes.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/quantity.h"
#include "base/strings.h"
#include "hived/config.h"

namespace muster::answers {
namespace {

using json::at;

constexpr std::size_t kChangesMax = 64;
constexpr std::int64_t kNodesMax = 10'000;
constexpr std::int64_t kCopiesMax = 1000;
constexpr const char* kKinds =
    "addNodes, removeNodes, drain, stop, submit, priority, lasts, queue, hived or policy";

constexpr std::string_view kWords[] = {"addNodes",
                                       "removeNodes",
                                       "drain",
                                       "stop",
                                       "submit",
                                       "priority",
                                       "lasts",
                                       "queue",
                                       "hived",
                                       "policy"};

struct Wish {
  std::string_view word;
  const json::Value* body = nullptr;
};

Result<Wish> wish_of(const json::Value& change) {
  Wish wish;
  for (const auto& member : json::as_object(change)) {
    if (member.key() == "at") continue;
    const auto known = std::find(std::begin(kWords), std::end(kWords), member.key());
    if (known == std::end(kWords))
      return fail(Code::kBadRequest,
                  fmt::format("a change {}: wanted {}", quoted(member.key()), kKinds));
    if (wish.body != nullptr)
      return fail(Code::kBadRequest,
                  fmt::format("one change is {} and {}: wanted one of them each",
                              quoted(wish.word),
                              quoted(*known)));
    wish = {*known, &member.value()};
  }
  if (wish.body == nullptr)
    return fail(Code::kBadRequest, fmt::format("an empty change: wanted {}", kKinds));
  return wish;
}

std::vector<std::string> texts(const json::Value& list) {
  std::vector<std::string> out;
  for (const json::Value& one : json::as_array(list)) out.push_back(json::text(one));
  return out;
}

std::vector<std::string> jobs_of(const Wish& wish) {
  if (wish.word == "stop") return texts(at(*wish.body, "jobs"));
  if (wish.word == "priority" || wish.word == "lasts") return {json::text_at(*wish.body, "job")};
  return {};
}

class Reader {
 public:
  explicit Reader(const ChangeSources& from) : from_(from) {}

  Result<Change> read(const json::Value& value) {
    const auto wish = wish_of(value);
    if (!wish) return fail(wish.error());
    Change out;
    if (const std::string_view text = json::string_at(value, "at"); !text.empty()) {
      const auto after = parse_duration(text.starts_with('+') ? text.substr(1) : text);
      if (!after || after->count() < 0)
        return fail(Code::kBadRequest,
                    fmt::format("at {}: wanted a time from now, such as 2h", quoted(text)));
      out.at = *after;
    }
    const auto done = fill(*wish, out);
    if (!done) return fail(done.error());
    return out;
  }

 private:
  Result<void> fill(const Wish& wish, Change& out) {
    const json::Value& body = *wish.body;
    if (wish.word == "addNodes") return add_nodes(body, out);
    if (wish.word == "removeNodes") return name_nodes(body, ChangeKind::kRemoveNodes, out);
    if (wish.word == "drain") return name_nodes(body, ChangeKind::kDrain, out);
    if (wish.word == "submit") return submit(body, out);
    if (wish.word == "queue") return change_queue(body, out);
    if (wish.word == "hived") return take_cells(body, out);
    if (wish.word == "policy") return take_policy(body, out);
    for (const std::string& job : jobs_of(wish)) {
      const auto gangs = from_.gangs.find(job);
      if (gangs == from_.gangs.end() || gangs->second.empty())
        return fail(Code::kNotFound,
                    fmt::format("{} {}: nothing of it waits or runs", wish.word, quoted(job)));
      out.names.insert(out.names.end(), gangs->second.begin(), gangs->second.end());
    }
    if (out.names.empty())
      return fail(Code::kBadRequest, fmt::format("{}: wanted a job", wish.word));
    out.kind = ChangeKind::kStop;
    if (wish.word == "priority") return set_priority(body, out);
    if (wish.word == "lasts") return set_lasts(body, out);
    return {};
  }

  Result<void> set_priority(const json::Value& body, Change& out) const {
    out.kind = ChangeKind::kPriority;
    const std::string name = json::text_at(body, "class");
    const auto known = from_.priorities.find(name);
    if (known == from_.priorities.end())
      return fail(Code::kNotFound, fmt::format("there is no priority class {}", quoted(name)));
    out.priority = known->second;
    return {};
  }

  static Result<void> set_lasts(const json::Value& body, Change& out) {
    out.kind = ChangeKind::kLasts;
    const auto lasts = parse_duration(json::string_at(body, "duration"));
    if (!lasts || lasts->count() <= 0)
      return fail(Code::kBadRequest,
                  fmt::format("lasts {}: wanted a duration, such as 2h",
                              quoted(json::string_at(body, "duration"))));
    out.lasts = *lasts;
    return {};
  }

  Result<void> name_nodes(const json::Value& body, ChangeKind kind, Change& out) const {
    out.kind = kind;
    const std::vector<engine::Node> nodes = from_.engine.nodes_as_told();
    for (const std::string& name : texts(at(body, "nodes"))) {
      const bool there = std::any_of(
          nodes.begin(), nodes.end(), [&](const engine::Node& node) { return node.name == name; });
      if (!there) return fail(Code::kNotFound, fmt::format("there is no node {}", quoted(name)));
      out.names.push_back(name);
    }
    for (const auto& node : nodes) {
      const std::string_view selector = json::string_at(body, "selector");
      if (!selector.empty() && selected(node, selector)) out.names.push_back(node.name);
    }
    if (out.names.empty())
      return fail(Code::kBadRequest,
                  "wanted nodes, or a selector that some have: {\"nodes\": [\"node-1\"]}");
    return {};
  }

  static bool selected(const engine::Node& node, std::string_view selector) {
    const auto terms = split_nonempty(selector, ',');
    return std::all_of(terms.begin(), terms.end(), [&](const std::string& term) {
      const std::size_t equals = term.find('=');
      const std::string key(trim(term.substr(0, equals)));
      return std::any_of(node.labels.begin(), node.labels.end(), [&](const auto& label) {
        return label.first == key &&
               (equals == std::string::npos || label.second == trim(term.substr(equals + 1)));
      });
    });
  }

  [[nodiscard]] static std::int64_t gpus_of(const engine::Node& node) {
    for (const engine::Amount& amount : node.allocatable) {
      if (amount.name.find("gpu") != std::string::npos) return amount.value;
    }
    return static_cast<std::int64_t>(node.devices.size());
  }
  static bool has_model(const engine::Node& node, std::string_view model) {
    return model.empty() || std::any_of(node.devices.begin(),
                                        node.devices.end(),
                                        [&](const engine::Device& d) { return d.model == model; });
  }

  Result<void> add_nodes(const json::Value& body, Change& out) {
    out.kind = ChangeKind::kAddNodes;
    const std::int64_t count = json::as_int(at(body, "count"), 1);
    if (count < 1 || count > kNodesMax)
      return fail(Code::kBadRequest,
                  fmt::format("addNodes: count {}: wanted 1 to {}", count, kNodesMax));
    const std::string like = json::text_at(body, "like"), model = json::text_at(body, "model");
    const std::int64_t gpus = json::int_at(body, "gpus");
    const engine::Node* pattern = nullptr;
    const std::vector<engine::Node> nodes = from_.engine.nodes_as_told();
    for (const engine::Node& node : nodes) {
      const bool fits = !like.empty()
                            ? node.name == like
                            : (gpus == 0 || gpus_of(node) == gpus) && has_model(node, model);
      if (fits && pattern == nullptr) pattern = &node;
    }
    if (pattern == nullptr)
      return fail(
          Code::kBadRequest,
          like.empty()
              ? fmt::format(
                    "addNodes: no node has {} GPUs{}: new nodes are copies of an existing one",
                    gpus,
                    model.empty() ? "" : " of model " + model)
              : fmt::format("addNodes: there is no node {} to copy", quoted(like)));
    for (std::int64_t i = 0; i < count; ++i) {
      engine::Node made = *pattern;
      made.name = fmt::format("new-{}", ++nodes_made_);
      for (auto& [key, value] : made.labels) {
        if (value == pattern->name) value = made.name;
      }
      made.unschedulable = false;
      made.ready = true;
      out.events.emplace_back(engine::NodeUpsert{std::move(made)});
    }
    return {};
  }

  Result<void> submit(const json::Value& body, Change& out) {
    out.kind = ChangeKind::kSubmit;
    MUSTER_CHECK(next_draft_ < from_.drafts.size(), "a manifest was not drafted");
    const Draft& draft = from_.drafts[next_draft_++];
    if (!draft.refused.empty())
      return fail(Code::kInvalid, fmt::format("submit {}: {}", draft.name, draft.refused));
    if (!draft.idle.empty())
      return fail(Code::kInvalid, fmt::format("submit {}: {}", draft.name, draft.idle));
    const std::int64_t count = json::as_int(at(body, "count"), 1);
    for (std::int64_t i = 0; i < count; ++i) {
      for (engine::Event& event : events_of(draft, copies_++))
        out.events.push_back(std::move(event));
    }
    return {};
  }

  Result<void> change_queue(const json::Value& body, Change& out) const {
    out.kind = ChangeKind::kQueue;
    const std::string name = json::text_at(body, "name");
    auto queue = from_.engine.queue_as_told(name);
    if (!queue) return fail(Code::kNotFound, fmt::format("there is no queue {}", quoted(name)));
    for (const auto& member : json::object_at(body, "set")) {
      const auto set = set_member(*queue, member.key(), member.value());
      if (!set) return set;
    }
    out.events.emplace_back(engine::QueueUpsert{std::move(*queue)});
    return {};
  }

  static Result<void> set_member(engine::Queue& queue,
                                 std::string_view key,
                                 const json::Value& value) {
    const std::string text = value.is_string() ? json::text(value) : json::dump(value);
    const auto wrong = [&](std::string_view wanted) {
      return fail(Code::kBadRequest,
                  fmt::format("queue {}: {}={}: wanted {}", queue.name, key, text, wanted));
    };
    if (key == "weight" || key == "priority") {
      const auto number = parse_int(text);
      if (!number || *number < 0) return wrong("a number");
      (key == "weight" ? queue.weight : queue.priority) = static_cast<std::int32_t>(*number);
      return {};
    }
    if (key == "state") {
      if (text != "open" && text != "closed") return wrong("open or closed");
      queue.state = text == "open" ? engine::QueueState::kOpen : engine::QueueState::kClosed;
      return {};
    }
    const std::size_t dot = key.find('.');
    const std::string_view what = key.substr(0, dot);
    engine::ResourceList* list = what == "capability"  ? &queue.capability
                                 : what == "guarantee" ? &queue.guarantee
                                 : what == "deserved"  ? &queue.deserved
                                                       : nullptr;
    if (list == nullptr || dot == std::string_view::npos)
      return fail(
          Code::kBadRequest,
          fmt::format(
              "queue {}: {}: wanted weight, priority, state, or capability, guarantee or deserved with a resource, such as capability.gpu",
              queue.name,
              quoted(key)));
    std::string resource(key.substr(dot + 1));
    if (resource == "gpu") resource = "nvidia.com/gpu";
    const auto amount = parse_quantity(text);
    if (!amount) return wrong("an amount, such as 64");
    const std::int64_t units = resource == "cpu" ? amount->milli() : amount->units();
    for (engine::Amount& one : *list) {
      if (one.name != resource) continue;
      one.value = units;
      return {};
    }
    list->push_back({resource, units});
    return {};
  }

  static Result<void> take_cells(const json::Value& body, Change& out) {
    out.kind = ChangeKind::kHived;
    out.text = json::text_at(body, "text");
    const auto config = hived::parse_config(out.text);
    if (!config) return fail(Code::kInvalid, "hived: " + config.error().message);
    return {};
  }

  Result<void> take_policy(const json::Value& body, Change& out) const {
    out.kind = ChangeKind::kPolicy;
    if (!from_.parse_policy) return fail(Code::kBadRequest, "policy: not known here");
    auto config = from_.parse_policy(json::string_at(body, "text"));
    if (!config) return fail(Code::kInvalid, "policy: " + config.error().message);
    out.events.emplace_back(engine::ConfigChange{std::move(*config)});
    return {};
  }

  const ChangeSources& from_;
  std::size_t next_draft_ = 0;
  std::int64_t nodes_made_ = 0, copies_ = 0;
};

}  // namespace

std::vector<engine::Event> events_of(const Draft& draft, std::int64_t number) {
  std::vector<engine::Event> out;
  const std::string tail = number == 0 ? "" : fmt::format("+{}", number);
  for (const auto* events : {&draft.groups, &draft.pods}) {
    for (engine::Event event : *events) {
      if (auto* group = std::get_if<engine::GroupUpsert>(&event)) group->group.key += tail;
      if (auto* pod = std::get_if<engine::PodUpsert>(&event)) {
        pod->pod.key += tail;
        pod->pod.uid += tail;
        if (!pod->pod.group.empty()) pod->pod.group += tail;
      }
      out.push_back(std::move(event));
    }
  }
  return out;
}

std::vector<std::string> jobs_named(const json::Value& list) {
  std::vector<std::string> out;
  for (const json::Value& change : json::as_array(list)) {
    const auto wish = wish_of(change);
    if (!wish) continue;
    for (std::string& job : jobs_of(*wish)) {
      if (std::find(out.begin(), out.end(), job) == out.end()) out.push_back(std::move(job));
    }
  }
  return out;
}

std::vector<std::string> cells_of(const json::Value& list) {
  std::vector<std::string> out;
  for (const json::Value& change : json::as_array(list)) {
    const auto wish = wish_of(change);
    if (wish && wish->word == "hived") out.push_back(json::text_at(*wish->body, "text"));
  }
  return out;
}

Result<std::vector<ToSubmit>> manifests_of(const json::Value& list) {
  std::vector<ToSubmit> out;
  for (const json::Value& change : json::as_array(list)) {
    const auto wish = wish_of(change);
    if (!wish || wish->word != "submit") continue;
    ToSubmit one{at(*wish->body, "manifest"), json::as_int(at(*wish->body, "count"), 1)};
    if (!one.manifest.is_object())
      return fail(Code::kBadRequest, "submit: wanted a manifest, as an object");
    if (one.count < 1 || one.count > kCopiesMax)
      return fail(Code::kBadRequest,
                  fmt::format("submit: count {}: wanted 1 to {}", one.count, kCopiesMax));
    out.push_back(std::move(one));
  }
  return out;
}

Result<std::vector<Change>> read_changes(const json::Value& list, const ChangeSources& from) {
  if (!list.is_array() && !list.is_null())
    return fail(Code::kBadRequest, "changes: wanted a list of changes");
  const json::Array& items = json::as_array(list);
  if (items.size() > kChangesMax)
    return fail(Code::kTooLarge,
                fmt::format("{} changes: at most {} at a time", items.size(), kChangesMax));
  Reader reader(from);
  std::vector<Change> out;
  for (const json::Value& item : items) {
    auto change = reader.read(item);
    if (!change) return fail(change.error());
    out.push_back(std::move(*change));
  }
  return out;
}

}  // namespace muster::answers
