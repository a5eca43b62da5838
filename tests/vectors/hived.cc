// HiveD's algorithm scenarios: scheduling, deletion, health, restart, and what the state looks like
// after.

#include "hived.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "hived/annotations.h"
#include "hived/config.h"
#include "hived_state.h"

namespace muster::vectors {
namespace {

using namespace engine::cells;
using json::Array;
using json::Object;
using json::Value;

constexpr Time kNow{1'700'000'000'000'000};

constexpr std::string_view kAssertions[] = {
    "bind", "preempt", "wait", "error", "configError", "ok", "state", "cells", "partial"};
/// Fields of a step by its operation; "op", "expect" and prose are everywhere.
const std::map<std::string_view, std::set<std::string_view>> kStepFields = {
    {"schedule", {"pod", "phase", "suggestedNodes", "spec", "annotation", "namespace", "commit"}},
    {"deleteAllocated", {"pod"}},
    {"deleteUnallocated", {"pod"}},
    {"setNodeBad", {"node"}},
    {"setNodeHealthy", {"node"}},
    {"restart",
     {"config", "configExtra", "chainOrder", "initialNodes", "replay", "expectConfigError"}},
    {"inspect", {}},
    {"cells", {}}};
constexpr std::string_view kStateKeys[] = {
    "groups", "physicalCells", "virtualCells", "opportunisticCells", "internal", "partial"};

Result<std::string> read_text(const std::string& path) {
  std::ifstream in(path);
  if (!in) return fail(Code::kNotFound, fmt::format("cannot read \"{}\"", path));
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

/// Sorted copy of an array of scalars, for sets.
Value sorted(const Value& value) {
  Array out = json::as_array(value);
  std::sort(out.begin(), out.end(), [](const Value& a, const Value& b) {
    return json::dump(a) < json::dump(b);
  });
  return out;
}

/// "" if `got` has all that `want` says (all keys of an object if `exact`), else the first
/// difference.
std::string difference(const std::string& where, const Value& want, const Value& got, bool exact) {
  if (want.is_object()) {
    if (!got.is_object()) return fmt::format("{}: {}", where, json::dump(got));
    for (const auto& member : want.get_object()) {
      const std::string here = where + "." + std::string(member.key());
      const Value* value = got.get_object().if_contains(member.key());
      if (value == nullptr) return here + " is absent";
      if (auto d = difference(here, member.value(), *value, exact); !d.empty()) return d;
    }
    for (const auto& member : got.get_object()) {
      if (exact && !want.get_object().contains(member.key()))
        return fmt::format("{}.{} = {} is too much",
                           where,
                           std::string_view(member.key()),
                           json::dump(member.value()));
    }
    return "";
  }
  return json::equal(want, got)
             ? ""
             : fmt::format("{} = {}, wanted {}", where, json::dump(got), json::dump(want));
}

struct Pod {
  std::string ns = "test";
  std::optional<PodSpec> spec;
  std::string annotation;
  bool has_annotation = false;
  std::optional<std::string> bind_text;  // of an allocated pod, as it stands in the annotation
  BindInfo bind;
  std::string last;  // kind of its last result
};

class Scenario {
 public:
  Scenario(const std::string& path, const Value& file)
      : folder_(std::filesystem::path(path).parent_path()), file_(file) {}

  HivedOutcome run() {
    const auto error = load(json::at(file_, "config"), file_);
    const Value& want_error = json::at(file_, "expectConfigError");
    if (!want_error.is_null()) {
      if (!error)
        add("load", "config error: " + json::text(want_error), "the configuration was accepted");
      else
        ++(error->find(json::text(want_error)) != std::string::npos ? out_.exact : out_.equivalent);
      if (error && out_.equivalent > 0)
        out_.first_equivalent =
            fmt::format("load: wanted {}, got {}", json::text(want_error), *error);
      return std::move(out_);
    }
    if (error) {
      add("load", "the configuration is accepted", *error);
      return std::move(out_);
    }
    const Array& steps = json::array_at(file_, "steps");
    for (std::size_t i = 0; i < steps.size(); ++i) {
      step_ =
          fmt::format("{} {} {}", i, json::text_at(steps[i], "op"), json::text_at(steps[i], "pod"));
      step(steps[i]);
      if (out_.failures.size() > 3) break;
    }
    for (const Value& property : json::array_at(file_, "properties")) check_property(property);
    return std::move(out_);
  }

 private:
  void add(const std::string& step, std::string wanted, std::string got) {
    out_.failures.push_back({step, std::move(wanted), std::move(got)});
  }

  std::optional<std::string> load(const Value& config, const Value& owner) {
    std::string text = json::text(config);
    if (config.is_object()) {
      text = json::dump(config);
    } else if (text.find('\n') == std::string::npos) {
      auto read = read_text((folder_ / text).string());
      if (!read) return read.error().message;
      text = std::move(*read);
    }
    text += json::text_at(owner, "configExtra");
    auto parsed = hived::parse_config(text);
    if (!parsed) return parsed.error().message;
    Options options;
    options.descending_chains =
        json::as_string(json::at(owner, "chainOrder"), "descending") == "descending";
    auto made = CellAllocator::create(parsed->cells, options);
    if (!made) return made.error().message;
    allocator_.emplace(std::move(*made));
    const Value& nodes = json::at(owner, "initialNodes");
    if (nodes.is_array()) {
      for (const Value& node : nodes.get_array()) allocator_->set_node(json::text(node), true);
    } else if (json::as_string(nodes, "allHealthy") == "allHealthy") {
      for (const Node& node : allocator_->cells().nodes) allocator_->set_node(node.name, true);
    }
    return std::nullopt;
  }

  /// An assertion that this runner does not know must not pass unseen.
  void check_known(const Value& expect) {
    for (const auto& member : json::as_object(expect)) {
      const std::string_view key = member.key();
      if (key == "anyOf") {
        for (const Value& one : json::as_array(member.value())) check_known(one);
      } else if (std::find(std::begin(kAssertions), std::end(kAssertions), key) ==
                 std::end(kAssertions)) {
        add(step_, "an assertion of the format", fmt::format("unknown \"{}\"", key));
      }
    }
    for (const auto& member : json::object_at(expect, "state")) {
      const std::string_view key = member.key();
      if (std::find(std::begin(kStateKeys), std::end(kStateKeys), key) == std::end(kStateKeys))
        add(step_, "a part of the state", fmt::format("unknown \"{}\"", key));
    }
  }

  /// Nor must a field of a step, or a word that would be read as its default.
  void check_fields(const Value& s) {
    const auto known = kStepFields.find(json::string_at(s, "op"));
    if (known == kStepFields.end()) return;  // said where it is played
    static const std::set<std::string_view> kProse = {
        "op", "expect", "hivedActual", "note", "notes", "comment", "why"};
    for (const auto& member : json::as_object(s)) {
      const std::string_view key = member.key();
      if (!known->second.contains(key) && !kProse.contains(key))
        add(step_, "a field of the format", fmt::format("unknown \"{}\"", key));
    }
    const auto phase = json::as_string(json::at(s, "phase"), "Filtering");
    if (phase != "Filtering" && phase != "Preempting")
      add(step_, "phase Filtering or Preempting", std::string(phase));
    const Value& nodes = json::at(s, "suggestedNodes");
    if (nodes.is_string() && json::as_string(nodes) != "all")
      add(step_, "suggestedNodes all, a list or allExcept", json::dump(nodes));
    if (nodes.is_object() && !json::at(nodes, "allExcept").is_array())
      add(step_, "suggestedNodes all, a list or allExcept", json::dump(nodes));
  }

  void step(const Value& s) {
    check_known(json::at(s, "expect"));
    check_fields(s);
    const std::string op = json::text_at(s, "op");
    const std::string pod = json::text_at(s, "pod");
    const Value& expect = json::at(s, "expect");
    if (op == "schedule") {
      schedule(s, pod, expect);
    } else if (op == "deleteAllocated") {
      if (auto found = pods_.find(pod); found != pods_.end() && found->second.bind_text) {
        (void)allocator_->delete_allocated(ref(pod), *found->second.spec, found->second.bind);
        found->second.bind_text.reset();
        std::erase(order_, pod);
      }
    } else if (op == "deleteUnallocated") {
      if (auto found = pods_.find(pod); found != pods_.end() && found->second.spec)
        allocator_->delete_unallocated(ref(pod), found->second.spec->group);
    } else if (op == "setNodeBad" || op == "setNodeHealthy") {
      allocator_->set_node(json::text_at(s, "node"), op == "setNodeHealthy");
    } else if (op == "restart") {
      restart(s, expect);
    } else if (op == "inspect") {
      inspect(expect);
    } else if (op == "cells") {
      const Value got = hived_cells(*allocator_);
      if (auto d = cells_difference(json::at(expect, "cells"), got); !d.empty())
        add(step_, "cells as recorded", d);
    } else {
      add(step_, "an operation of the format", "unknown op " + op);
    }
  }

  PodRef ref(const std::string& pod) { return {pod, pods_[pod].ns + "/" + pod}; }

  void schedule(const Value& s, const std::string& name, const Value& expect) {
    Pod& pod = pods_[name];
    if (!json::at(s, "namespace").is_null()) pod.ns = json::text_at(s, "namespace");
    if (!json::at(s, "annotation").is_null()) {
      pod.annotation = json::text_at(s, "annotation");
      pod.has_annotation = true;
    } else if (const Value* spec = s.get_object().if_contains("spec")) {
      pod.has_annotation = !spec->is_null();
      pod.annotation = spec->is_null() ? "" : json::dump(*spec);
    }
    Decision decision;
    const auto spec = hived::parse_scheduling_spec(pod.annotation, pod.ns, name);
    if (!spec) {
      decision.kind = Decision::Kind::kError;
      decision.reason = spec.error().message;
    } else {
      if (!pod.bind_text) pod.spec = *spec;
      const auto suggested = suggested_nodes(json::at(s, "suggestedNodes"));
      const PodRef pod_ref = ref(name);
      decision = allocator_->schedule(
          {pod_ref,
           *spec,
           json::string_at(s, "phase") == "Preempting" ? Phase::kPreempting : Phase::kFiltering,
           suggested ? &*suggested : nullptr,
           kNow});
      if (decision.kind == Decision::Kind::kBind && json::as_bool(json::at(s, "commit"), true)) {
        pod.spec = *spec;
        pod.bind = decision.bind;
        pod.bind_text = hived::format_bind_info(decision.bind);
        std::erase(order_, name);
        order_.push_back(name);
        if (auto added = allocator_->add_allocated(pod_ref, *spec, decision.bind, kNow); !added)
          add(step_, "the pod is added", added.error().message);
      }
    }
    pod.last = kind_of(decision);
    compare(expect, decision, name);
  }

  std::optional<std::vector<std::string>> suggested_nodes(const Value& value) {
    if (value.is_null() || value.is_string()) return std::nullopt;
    std::vector<std::string> out;
    if (value.is_array()) {
      for (const Value& node : value.get_array()) out.push_back(json::text(node));
      return out;
    }
    std::set<std::string> except;
    for (const Value& node : json::array_at(value, "allExcept")) except.insert(json::text(node));
    for (const Node& node : allocator_->cells().nodes) {
      if (!except.contains(node.name)) out.push_back(node.name);
    }
    return out;
  }

  static std::string kind_of(const Decision& d) {
    switch (d.kind) {
      case Decision::Kind::kBind:
        return "bind";
      case Decision::Kind::kPreempt:
        return "preempt";
      case Decision::Kind::kWait:
        return "wait";
      case Decision::Kind::kError:
        return "error";
    }
    return "";
  }

  static Value bind_json(const BindInfo& bind) {
    Array group;
    for (const MemberPlacement& member : *bind.group) {
      Array pods;
      for (const PodPlacement& pod : member.pods) {
        Array leaves, types;
        for (const std::int32_t leaf : pod.leaves) leaves.push_back(leaf);
        for (const std::string& type : pod.preassigned_types) types.push_back(Value(type));
        pods.push_back(Object{{"node", pod.node},
                              {"leafCells", std::move(leaves)},
                              {"preassignedCellTypes", std::move(types)}});
      }
      const std::size_t leaves = member.pods.empty() ? 0 : member.pods[0].leaves.size();
      group.push_back(
          Object{{"leafCellNumber", static_cast<std::int64_t>(leaves)}, {"pods", std::move(pods)}});
    }
    Array leaves;
    for (const std::int32_t leaf : bind.leaves) leaves.push_back(leaf);
    return Object{{"node", bind.node},
                  {"leafCells", std::move(leaves)},
                  {"cellChain", bind.chain},
                  {"group", std::move(group)}};
  }

  static std::string got_text(const Decision& d) {
    switch (d.kind) {
      case Decision::Kind::kBind:
        return "bind " + json::dump(bind_json(d.bind));
      case Decision::Kind::kPreempt: {
        std::string out = "preempt";
        for (const Victims& v : d.victims) {
          out += " " + v.node + ":";
          for (const PodRef& pod : v.pods) out += " " + pod.uid;
        }
        return out;
      }
      case Decision::Kind::kWait:
        return "wait: " + d.reason;
      case Decision::Kind::kError:
        return "error: " + d.reason;
    }
    return "";
  }

  enum class Match { kNo, kEquivalent, kExact };

  /// Shape of a gang: pods of each size, how many leaves on how many nodes, and who pays.
  static std::string shape(const Value& bind, std::size_t& nodes) {
    std::map<std::int64_t, std::size_t> pods;
    std::set<std::string> seen;
    bool opportunistic = false;
    for (const Value& member : json::array_at(bind, "group")) {
      for (const Value& pod : json::array_at(member, "pods")) {
        ++pods[static_cast<std::int64_t>(json::array_at(pod, "leafCells").size())];
        seen.insert(json::text_at(pod, "node"));
        for (const Value& type : json::array_at(pod, "preassignedCellTypes"))
          opportunistic = opportunistic || json::as_string(type).empty();
      }
    }
    nodes = seen.size();
    std::string out = opportunistic ? "opportunistic" : "guaranteed";
    for (const auto& [leaves, count] : pods) out += fmt::format(" {}x{}", count, leaves);
    return out;
  }

  Match match(const Value& want, const Decision& d) {
    if (const Value& bind = json::at(want, "bind"); !bind.is_null()) {
      if (d.kind != Decision::Kind::kBind) return Match::kNo;
      const Value got = bind_json(d.bind);
      if (difference("bind", bind, got, false).empty()) return Match::kExact;
      std::size_t want_nodes = 0, got_nodes = 0;
      if (shape(bind, want_nodes) != shape(got, got_nodes) || got_nodes > want_nodes)
        return Match::kNo;
      return json::array_at(bind, "leafCells").size() == d.bind.leaves.size() ? Match::kEquivalent
                                                                              : Match::kNo;
    }
    if (const Value& preempt = json::at(want, "preempt"); !preempt.is_null()) {
      if (d.kind != Decision::Kind::kPreempt || d.victims.empty()) return Match::kNo;
      const Value& victims = json::at(preempt, "victims");
      // Kubernetes preempts one node at a time, whichever: any node's victims are the recorded
      // answer.
      for (const Victims& one : d.victims) {
        Array names;
        for (const PodRef& pod : one.pods) names.push_back(Value(pod.uid));
        if (victims.is_null() || json::equal(sorted(Value(names)), sorted(victims)))
          return Match::kExact;
      }
      return d.victims[0].pods.size() <= json::as_array(victims).size() ? Match::kEquivalent
                                                                        : Match::kNo;
    }
    if (const Value& wait = json::at(want, "wait"); !wait.is_null()) {
      if (d.kind != Decision::Kind::kWait) return Match::kNo;
      return json::as_string(json::at(wait, "reason"), d.reason) == d.reason ? Match::kExact
                                                                             : Match::kEquivalent;
    }
    if (const Value& error = json::at(want, "error"); !error.is_null()) {
      if (d.kind != Decision::Kind::kError) return Match::kNo;
      return json::as_string(json::at(error, "message"), d.reason) == d.reason ? Match::kExact
                                                                               : Match::kEquivalent;
    }
    return Match::kNo;
  }

  void compare(const Value& expect, const Decision& d, const std::string& pod) {
    Match best = Match::kNo;
    const Value& any = json::at(expect, "anyOf");
    if (any.is_array()) {
      for (const Value& one : any.get_array()) best = std::max(best, match(one, d));
    } else {
      best = match(expect, d);
    }
    if (best == Match::kNo) {
      add(step_, json::dump(expect), got_text(d));
    } else if (best == Match::kEquivalent) {
      ++out_.equivalent;
      if (out_.first_equivalent.empty())
        out_.first_equivalent =
            fmt::format("{}: wanted {}, got {}", step_, json::dump(expect), got_text(d));
      if (d.kind == Decision::Kind::kBind || d.kind == Decision::Kind::kPreempt) diverged_ = true;
    } else {
      ++out_.exact;
    }
    (void)pod;
  }

  void restart(const Value& s, const Value& expect) {
    const Value& config = json::at(s, "config");
    const auto error = load(config.is_null() ? json::at(file_, "config") : config, s);
    const bool want_error = !json::at(expect, "error").is_null() ||
                            !json::at(expect, "configError").is_null() ||
                            !json::at(s, "expectConfigError").is_null();
    if (want_error != error.has_value())
      add(step_, json::dump(expect), error ? *error : "the configuration was accepted");
    if (error) return;
    std::vector<std::string> replay = order_;
    if (json::at(s, "replay").is_array()) {
      replay.clear();
      for (const Value& pod : json::at(s, "replay").get_array()) replay.push_back(json::text(pod));
    }
    for (const std::string& name : replay) {
      Pod& pod = pods_[name];
      if (!pod.bind_text) continue;  // deleted, or never bound
      // Only what stands on the pod survives.
      auto spec = hived::parse_scheduling_spec(pod.annotation, pod.ns, name);
      auto bind = hived::parse_bind_info(*pod.bind_text);
      if (!spec || !bind) {
        add(step_,
            "annotations that can be read back",
            !spec ? spec.error().message : bind.error().message);
        continue;
      }
      pod.spec = *spec;
      pod.bind = *bind;
      (void)allocator_->add_allocated(ref(name), *spec, *bind, kNow);
    }
    order_ = replay;
    ++out_.exact;
  }

  /// Fills in the defaults of a cell, so that "only what differs" compares whole.
  static Object with_defaults(const Object& cells) {
    Object out;
    for (const auto& member : cells) {
      Object cell = json::as_object(member.value());
      for (const auto& [key, value] : {std::pair<const char*, Value>{"priority", -2},
                                       {"state", "Free"},
                                       {"healthiness", "Healthy"}}) {
        if (!cell.contains(key)) cell[key] = value;
      }
      out[member.key()] = std::move(cell);
    }
    return out;
  }

  void inspect(const Value& expect) {
    const Value got = hived_state(*allocator_);
    std::string best;
    const Value& any = json::at(expect, "anyOf");
    const Array options = any.is_array() ? any.get_array() : Array{expect};
    for (const Value& option : options) {
      const std::string d =
          state_difference(json::at(option, "state"),
                           got,
                           json::bool_at(option, "partial") || json::bool_at(expect, "partial"));
      if (d.empty()) {
        ++out_.exact;
        return;
      }
      if (best.empty()) best = d;
    }
    if (diverged_ && std::any_of(options.begin(), options.end(), [&](const Value& o) {
          return equivalent_state(json::at(o, "state"), got);
        })) {
      ++out_.equivalent;
      return;
    }
    add(step_, "the recorded state", best);
  }

  static std::string state_difference(const Value& want, const Value& got, bool partial) {
    for (const auto& member : json::as_object(want)) {
      const std::string key(member.key());
      if (key == "partial") continue;
      const Value& mine = json::at(got, key);
      std::string d;
      if ((key == "physicalCells" || key == "virtualCells") && !partial) {
        d = difference(key,
                       with_defaults(json::as_object(member.value())),
                       with_defaults(json::as_object(mine)),
                       true);
      } else if (key == "internal") {
        for (const auto& part : json::as_object(member.value())) {
          if (d.empty())
            d = difference("internal." + std::string(part.key()),
                           part.value(),
                           json::at(mine, part.key()),
                           false);
        }
      } else if (key == "groups") {
        for (const auto& group : json::as_object(member.value())) {
          if (d.empty())
            d = difference("groups." + std::string(group.key()),
                           group.value(),
                           json::at(mine, group.key()),
                           false);
        }
        if (d.empty() && !partial &&
            json::as_object(mine).size() != json::as_object(member.value()).size())
          d = "groups: more than recorded: " + json::dump(mine);
      } else {
        d = difference(key, member.value(), mine, !partial);
      }
      if (!d.empty()) return d;
    }
    return "";
  }

  /// After an equivalent but different placement only what does not depend on the place can be
  /// compared.
  static bool equivalent_state(const Value& want, const Value& got) {
    const Object& wanted = json::object_at(want, "groups");
    const Object& mine = json::object_at(got, "groups");
    if (wanted.size() != mine.size()) return false;
    for (const auto& group : wanted) {
      const Value* other = mine.if_contains(group.key());
      if (other == nullptr) return false;
      for (const char* key :
           {"vc", "priority", "state", "lazyPreempted", "allocatedPods", "preemptingPods"}) {
        if (!json::at(group.value(), key).is_null() &&
            !json::equal(json::at(group.value(), key), json::at(*other, key)))
          return false;
      }
    }
    return true;
  }

  void check_property(const Value& property) {
    const std::string kind = json::text_at(property, "kind");
    const std::string node = json::text_at(property, "node");
    std::int64_t bound = 0;
    std::set<std::string> nodes;
    for (const Value& name : json::array_at(property, "pods")) {
      const auto pod = pods_.find(json::text(name));
      if (pod == pods_.end() || pod->second.last != "bind") continue;
      ++bound;
      nodes.insert(pod->second.bind.node);
    }
    const std::int64_t count = json::int_at(property, "count");
    bool ok = false;
    if (kind == "bindCount")
      ok = bound == count;
    else if (kind == "nodeCount")
      ok = static_cast<std::int64_t>(nodes.size()) == count;
    else if (kind == "nodeCountAtLeast")
      ok = static_cast<std::int64_t>(nodes.size()) >= count;
    else if (kind == "sameNode")
      ok = nodes.size() == 1;
    else if (kind == "onNode")
      ok = nodes.size() == 1 && nodes.contains(node);
    else if (kind == "notOnNode")
      ok = !nodes.contains(node);
    if (!ok)
      add("properties",
          json::dump(property),
          fmt::format("{} bound on {} nodes", bound, nodes.size()));
  }

  std::filesystem::path folder_;
  const Value& file_;
  std::optional<CellAllocator> allocator_;
  std::map<std::string, Pod> pods_;
  std::vector<std::string> order_;
  std::string step_;
  bool diverged_ = false;
  HivedOutcome out_;
};

}  // namespace

HivedOutcome run_hived_algorithm(const std::string& path, const json::Value& file) {
  return Scenario(path, file).run();
}

}  // namespace muster::vectors
