// Scenarios in Volcano's terms: a cluster, its configuration file and steps with what must be true
// after each. Every file runs twice: with pods present from the start, and with pods created once
// the group left Pending.
#include <fmt/format.h>

#include <map>
#include <set>

#include "base/quantity.h"
#include "base/time.h"
#include "engine/engine.h"
#include "runner.h"

namespace muster::vectors {
namespace {

using json::Value;
using namespace muster::engine;  // the subject of this file

constexpr int kMostCycles = 500;

/// Says what in a file the format does not know, so that nothing is passed over in silence.
class Strict {
 public:
  explicit Strict(Failures& failures) : failures_(failures) {}

  void complain(const std::string& where, const std::string& wanted, const std::string& got) {
    failures_.push_back({where, wanted, got});
  }

  void keys(const Value& object,
            const std::string& where,
            const std::set<std::string_view>& known) {
    if (object.is_null()) return;
    if (!object.is_object()) return complain(where, "an object", json::dump(object));
    for (const auto& [key, _] : json::as_object(object)) {
      if (!known.contains(std::string_view(key)))
        complain(where, fmt::format("one of {}", fmt::join(known, ", ")), std::string(key));
    }
  }

  /// A member that is there is of the right kind: one of another kind would be read as absent.
  template <typename Right>
  void typed(const Value& object,
             const std::string& where,
             std::initializer_list<const char*> names,
             const char* kind,
             Right right) {
    for (const char* name : names) {
      const Value& value = json::at(object, name);
      if (!value.is_null() && !right(value)) complain(where + "." + name, kind, json::dump(value));
    }
  }
  void texts(const Value& object,
             const std::string& where,
             std::initializer_list<const char*> names) {
    typed(object, where, names, "a text", [](const Value& v) { return v.is_string(); });
  }
  void numbers(const Value& object,
               const std::string& where,
               std::initializer_list<const char*> names) {
    typed(object, where, names, "a whole number", [](const Value& v) {
      return v.is_int64() || v.is_uint64();
    });
  }
  void flags(const Value& object,
             const std::string& where,
             std::initializer_list<const char*> names) {
    typed(object, where, names, "true or false", [](const Value& v) { return v.is_bool(); });
  }

  void required(const Value& object,
                const std::string& where,
                std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (json::at(object, name).is_null()) complain(where, name, "nothing");
    }
  }

 private:
  Failures& failures_;
};

/// Volcano's own flags; the mixed spelling is Volcano's.
const std::set<std::string_view> kFlags = {
    "enableJobOrder",           "enableHierarchy",    "enableJobReady",
    "enableJobPipelined",       "enableTaskOrder",    "enablePreemptable",
    "enableReclaimable",        "enablePreemptive",   "enableQueueOrder",
    "enabledClusterOrder",      "enablePredicate",    "enableBestNode",
    "enableNodeOrder",          "enableTargetJob",    "enableReservedNodes",
    "enableJobEnqueued",        "enabledVictim",      "enableJobStarving",
    "enabledOverused",          "enabledAllocatable", "enabledHyperNodeOrder",
    "enabledHyperNodeGradient", "enabledSubJobReady", "enabledSubJobPipelined",
    "enabledSubJobOrder"};

const std::set<std::string_view> kActions = {"enqueue",
                                             "allocate",
                                             "backfill",
                                             "preempt",
                                             "reclaim",
                                             "shuffle",
                                             "gangpreempt",
                                             "gangreclaim"};

const std::set<std::string_view> kPlugins = {"binpack",
                                             "capacity",
                                             "cdp",
                                             "conformance",
                                             "deviceshare",
                                             "drf",
                                             "extender",
                                             "gang",
                                             "network-topology-aware",
                                             "nodegroup",
                                             "nodeorder",
                                             "numa-aware",
                                             "overcommit",
                                             "pdb",
                                             "predicates",
                                             "priority",
                                             "proportion",
                                             "rescheduling",
                                             "resourcequota",
                                             "sla",
                                             "tdm",
                                             "task-topology",
                                             "resource-strategy-fit",
                                             "usage"};

const std::set<std::string_view> kNode = {"name", "allocatable", "labels"};
const std::set<std::string_view> kQueue = {"name",
                                           "weight",
                                           "capability",
                                           "deserved",
                                           "guarantee",
                                           "reclaimable",
                                           "priority",
                                           "parent",
                                           "state",
                                           "hierarchy",
                                           "hierarchy_weights"};
const std::set<std::string_view> kGroup = {"op",
                                           "name",
                                           "namespace",
                                           "queue",
                                           "min_member",
                                           "min_task_member",
                                           "min_resources",
                                           "priority_class",
                                           "sla_waiting_time",
                                           "tasks"};
const std::set<std::string_view> kTask = {"role",
                                          "replicas",
                                          "requests",
                                          "priority",
                                          "preemptable",
                                          "preemption_policy",
                                          "node_selector"};

void check_resources(Strict& strict, const Value& map, const std::string& where) {
  if (map.is_null()) return;
  if (!map.is_object()) return strict.complain(where, "a map of quantities", json::dump(map));
  for (const auto& [name, text] : json::as_object(map)) {
    const auto quantity =
        parse_quantity(text.is_string() ? json::as_string(text) : json::dump(text));
    if (!quantity) strict.complain(where + "." + std::string(name), "a quantity", json::dump(text));
  }
}

void check_node(Strict& strict, const Value& node, const std::string& where) {
  strict.keys(node, where, kNode);
  strict.required(node, where, {"name", "allocatable"});
  check_resources(strict, json::at(node, "allocatable"), where + ".allocatable");
}

void check_state(Strict& strict, const Value& state, const std::string& where) {
  const auto text = json::as_string(state, "Open");
  if (text != "Open" && text != "Closed" && text != "Closing" && text != "Unknown") {
    strict.complain(where, "Open, Closing, Closed or Unknown", std::string(text));
  }
}

void check_config(Strict& strict, const Value& config) {
  strict.keys(config, "config", {"actions", "tiers", "configurations"});
  for (const auto& a : json::array_at(config, "actions")) {
    if (!kActions.contains(json::as_string(a)))
      strict.complain("config.actions", "an action of Volcano", json::dump(a));
  }
  for (const auto& tier : json::array_at(config, "tiers")) {
    for (const auto& plugin : json::as_array(tier)) {
      const std::string where = "config.tiers " + json::text_at(plugin, "name");
      std::set<std::string_view> known = kFlags;
      known.insert({"name", "arguments"});
      strict.keys(plugin, where, known);
      strict.required(plugin, where, {"name"});
      if (!kPlugins.contains(json::string_at(plugin, "name")))
        strict.complain(where, "a plugin of Volcano", json::dump(json::at(plugin, "name")));
      for (const auto flag : kFlags) strict.flags(plugin, where, {flag.data()});
    }
  }
}

void check_operation(Strict& strict, const Value& file, const Value& op, const std::string& where) {
  const auto kind = json::string_at(op, "op");
  if (kind == "create_group") {
    strict.keys(op, where, kGroup);
    strict.required(op, where, {"name", "tasks"});
    strict.texts(op, where, {"name", "namespace", "queue", "priority_class", "sla_waiting_time"});
    strict.numbers(op, where, {"min_member"});
    check_resources(strict, json::at(op, "min_resources"), where + ".min_resources");
    const auto cls = json::text_at(op, "priority_class");
    if (!cls.empty() && !json::at(file, "priority_classes", cls).is_number())
      strict.complain(where, "a listed priority class", cls);
    const auto sla = json::text_at(op, "sla_waiting_time");
    if (!sla.empty() && !parse_duration(sla))
      strict.complain(where + ".sla_waiting_time", "a duration", sla);
    for (const auto& task : json::array_at(op, "tasks")) {
      strict.keys(task, where + ".tasks", kTask);
      strict.required(task, where + ".tasks", {"role"});
      strict.numbers(task, where + ".tasks", {"replicas", "priority"});
      strict.flags(task, where + ".tasks", {"preemptable"});
      check_resources(strict, json::at(task, "requests"), where + ".tasks.requests");
      const auto policy = json::as_string(json::at(task, "preemption_policy"), "Never");
      if (policy != "Never" && policy != "PreemptLowerPriority") {
        strict.complain(where + ".tasks.preemption_policy",
                        "Never or PreemptLowerPriority",
                        std::string(policy));
      }
    }
  } else if (kind == "complete_group" || kind == "delete_group") {
    strict.keys(op, where, {"op", "group"});
    strict.required(op, where, {"group"});
  } else if (kind == "add_node") {
    strict.keys(op, where, {"op", "node"});
    check_node(strict, json::at(op, "node"), where + ".node");
  } else if (kind == "remove_node") {
    strict.keys(op, where, {"op", "node"});
    strict.required(op, where, {"node"});
  } else if (kind == "set_queue") {
    strict.keys(op, where, {"op", "queue", "state", "reclaimable"});
    strict.required(op, where, {"queue"});
    strict.flags(op, where, {"reclaimable"});
    check_state(strict, json::at(op, "state"), where + ".state");
  } else {
    strict.complain(where, "an operation of the format", json::dump(json::at(op, "op")));
  }
}

void check_expectation(Strict& strict, const Value& expect, const std::string& where) {
  strict.keys(expect, where, {"groups", "evicted", "evicted_pods", "placement"});
  for (const auto& [name, group] : json::object_at(expect, "groups")) {
    const std::string here = where + " " + std::string(name);
    strict.keys(group, here, {"state", "running", "pending", "phase"});
    strict.numbers(group, here, {"running", "pending"});
    strict.texts(group, here, {"state", "phase"});
    const auto state = json::as_string(json::at(group, "state"), "running");
    static const std::set<std::string_view> kStates = {
        "running", "waiting", "degraded", "completed"};
    if (!kStates.contains(state))
      strict.complain(here, "running, waiting, degraded or completed", std::string(state));
  }
}

Failures check_file(const Value& file) {
  Failures failures;
  Strict strict(failures);
  strict.keys(file,
              "file",
              {"id",
               "title",
               "why",
               "derived_from",
               "strictness",
               "config",
               "priority_classes",
               "nodes",
               "queues",
               "steps",
               "fails"});  // for those of wrong/, which must not pass
  const auto strictness = json::as_string(json::at(file, "strictness"), "must");
  if (strictness != "must" && strictness != "compat")
    strict.complain("strictness", "must or compat", std::string(strictness));
  check_config(strict, json::at(file, "config"));
  for (const auto& n : json::array_at(file, "nodes")) check_node(strict, n, "nodes");
  for (const auto& q : json::array_at(file, "queues")) {
    const std::string where = "queue " + json::text_at(q, "name");
    strict.keys(q, where, kQueue);
    strict.required(q, where, {"name"});
    strict.numbers(q, where, {"weight", "priority"});
    strict.texts(q, where, {"hierarchy", "hierarchy_weights"});
    strict.flags(q, where, {"reclaimable"});
    for (const char* map : {"capability", "deserved", "guarantee"})
      check_resources(strict, json::at(q, map), where + "." + map);
    check_state(strict, json::at(q, "state"), where + ".state");
  }
  int number = 0;
  for (const auto& step : json::array_at(file, "steps")) {
    const std::string where = fmt::format("{}", number++);
    strict.keys(step, where, {"at", "do", "expect"});
    strict.required(step, where, {"at"});
    strict.numbers(step, where, {"at"});
    for (const auto& op : json::array_at(step, "do"))
      check_operation(strict, file, op, where + " do");
    check_expectation(strict, json::at(step, "expect"), where + " expect");
  }
  return failures;
}

ResourceList resources(const Value& map) {
  ResourceList list;
  for (const auto& [name, text] : json::as_object(map)) {
    const auto quantity =
        parse_quantity(text.is_string() ? json::as_string(text) : json::dump(text));
    if (!quantity) continue;  // check_file() has said so.
    list.push_back({std::string(name), name == "cpu" ? quantity->milli() : quantity->units()});
  }
  return list;
}

Config config_of(const Value& file) {
  Config config;
  config.policy = PolicyKind::kVolcano;
  config.volcano.actions.clear();
  for (const auto& a : json::array_at(file, "config", "actions"))
    config.volcano.actions.push_back(json::text(a));
  for (const auto& c : json::array_at(file, "config", "configurations")) {
    VolcanoAction action{json::text_at(c, "name"), {}};
    for (const auto& [k, v] : json::object_at(c, "arguments"))
      action.arguments.emplace_back(k, v.is_string() ? json::text(v) : json::dump(v));
    config.volcano.configurations.push_back(std::move(action));
  }
  for (const auto& tier : json::array_at(file, "config", "tiers")) {
    auto& plugins = config.volcano.tiers.emplace_back();
    for (const auto& p : json::as_array(tier)) {
      VolcanoPlugin plugin;
      for (const auto& [key, value] : json::as_object(p)) {
        if (key == "name") {
          plugin.name = json::text(value);
        } else if (key == "enableHierarchy") {
          plugin.hierarchy = json::as_bool(value);
        } else if (key == "arguments") {
          for (const auto& [k, v] : json::as_object(value)) {
            plugin.arguments.emplace_back(k, v.is_string() ? json::text(v) : json::dump(v));
          }
        } else if (value.is_bool() && !value.get_bool()) {
          plugin.off.emplace_back(key);
        }
      }
      plugins.push_back(std::move(plugin));
    }
  }
  return config;
}

struct Member {
  Pod pod;
  bool created = false;
  bool running = false;
  bool succeeded = false;
};

struct GroupRun {
  Group group;
  std::vector<Member> members;
  std::string phase = "Pending";
  bool completed = false;
};

class Scenario {
 public:
  Scenario(const Value& file, bool pods_at_once)
      : file_(file), pods_at_once_(pods_at_once), engine_(config_of(file)) {}

  Failures run() {
    for (const auto& n : json::array_at(file_, "nodes")) add_node(n);
    for (const auto& q : json::array_at(file_, "queues")) {
      Queue queue = queue_of(q);
      queues_[queue.name] = queue;
      engine_.apply(QueueUpsert{queue});
    }
    int number = 0;
    for (const auto& step : json::array_at(file_, "steps")) {
      at_ = json::int_at(step, "at");
      evicted_.clear();
      evicted_pods_.clear();
      for (const auto& op : json::array_at(step, "do")) apply(op);
      settle();
      check(fmt::format("{} (at {} s, {})",
                        number,
                        at_,
                        pods_at_once_ ? "pods at once" : "pods when admitted"),
            json::at(step, "expect"));
      ++number;
    }
    return failures_;
  }

 private:
  Time stamp() { return Time{1'000'000'000'000'000 + at_ * 1'000'000 + ++ticks_}; }
  [[nodiscard]] Time now() const { return Time{1'000'000'000'000'000 + at_ * 1'000'000 + 500'000}; }

  void add_node(const Value& n) {
    Node node;
    node.name = json::text_at(n, "name");
    node.allocatable = resources(json::at(n, "allocatable"));
    for (const auto& [k, v] : json::object_at(n, "labels"))
      node.labels.emplace_back(k, json::text(v));
    engine_.apply(NodeUpsert{node});
  }

  static Queue queue_of(const Value& q) {
    Queue queue;
    queue.name = json::text_at(q, "name");
    queue.parent = json::text_at(q, "parent");
    queue.weight = static_cast<std::int32_t>(json::as_int(json::at(q, "weight"), 1));
    queue.priority = static_cast<std::int32_t>(json::as_int(json::at(q, "priority"), 0));
    queue.reclaimable = json::as_bool(json::at(q, "reclaimable"), true);
    queue.capability = resources(json::at(q, "capability"));
    queue.guarantee = resources(json::at(q, "guarantee"));
    queue.deserved = resources(json::at(q, "deserved"));
    queue.hierarchy = json::text_at(q, "hierarchy");
    queue.hierarchy_weights = json::text_at(q, "hierarchy_weights");
    set_state(queue, json::at(q, "state"));
    return queue;
  }

  static void set_state(Queue& queue, const Value& state) {
    const auto text = json::as_string(state, "");
    if (text.empty()) return;
    queue.state = text == "Open"      ? QueueState::kOpen
                  : text == "Closing" ? QueueState::kClosing
                                      : QueueState::kClosed;
  }

  void apply(const Value& op) {
    const auto kind = json::string_at(op, "op");
    if (kind == "create_group") create_group(op);
    if ((kind == "complete_group" || kind == "delete_group") &&
        !groups_.contains(json::text_at(op, "group"))) {
      failures_.push_back(
          {fmt::format("at {} s", at_), "an existing group", json::text_at(op, "group")});
      return;
    }
    if (kind == "complete_group") complete_group(json::text_at(op, "group"));
    if (kind == "delete_group") delete_group(json::text_at(op, "group"));
    if (kind == "add_node") add_node(json::at(op, "node"));
    if (kind == "remove_node") remove_node(json::text_at(op, "node"));
    if (kind == "set_queue") {
      const std::string name = json::text_at(op, "queue");
      if (!queues_.contains(name)) {
        failures_.push_back({fmt::format("at {} s", at_), "an existing queue", name});
        return;
      }
      Queue& queue = queues_[name];
      set_state(queue, json::at(op, "state"));
      queue.reclaimable = json::as_bool(json::at(op, "reclaimable"), queue.reclaimable);
      engine_.apply(QueueUpsert{queue});
    }
  }

  void create_group(const Value& op) {
    GroupRun g;
    const std::string name = json::text_at(op, "name");
    const std::string ns = std::string(json::as_string(json::at(op, "namespace"), "default"));
    g.group.key = ns + "/" + name;
    g.group.queue = std::string(json::as_string(json::at(op, "queue"), "default"));
    g.group.min_member = static_cast<std::int32_t>(json::as_int(json::at(op, "min_member"), 1));
    for (const auto& [role, n] : json::object_at(op, "min_task_member")) {
      g.group.min_task_member.emplace_back(role, static_cast<std::int32_t>(json::as_int(n)));
    }
    if (json::at(op, "min_resources").is_object())
      g.group.min_resources = resources(json::at(op, "min_resources"));
    const std::string cls = json::text_at(op, "priority_class");
    g.group.priority =
        static_cast<std::int32_t>(json::as_int(json::at(file_, "priority_classes", cls), 0));
    const std::string sla = json::text_at(op, "sla_waiting_time");
    if (!sla.empty()) {
      const auto wait = parse_duration(sla);
      if (wait) g.group.sla_waiting_time = *wait;
    }
    g.group.created = stamp();
    for (const auto& task : json::array_at(op, "tasks")) {
      const std::string role = json::text_at(task, "role");
      for (std::int64_t i = 0; i < json::as_int(json::at(task, "replicas"), 1); ++i) {
        Member m;
        m.pod.key = fmt::format("{}/{}-{}-{}", ns, name, role, i);
        m.pod.ns = ns;
        m.pod.group = g.group.key;
        m.pod.role = role;
        m.pod.priority = static_cast<std::int32_t>(json::as_int(json::at(task, "priority"), 0));
        m.pod.preemptable = json::as_bool(json::at(task, "preemptable"), true);
        m.pod.critical = ns == "kube-system" || cls == "system-cluster-critical" ||
                         cls == "system-node-critical";
        if (json::string_at(task, "preemption_policy") == "Never") {
          m.pod.preemption_policy = PreemptionPolicy::kNever;
        }
        m.pod.requests = resources(json::at(task, "requests"));
        for (const auto& [k, v] : json::object_at(task, "node_selector")) {
          m.pod.node_selector.emplace_back(k, json::text(v));
        }
        g.members.push_back(std::move(m));
      }
    }
    engine_.apply(GroupUpsert{g.group});
    order_.push_back(name);
    groups_[name] = std::move(g);
    if (pods_at_once_) create_pods(groups_[name]);
  }

  void create_pods(GroupRun& g) {
    for (Member& m : g.members) {
      if (!m.created && !m.succeeded) create_pod(m);
    }
  }

  void create_pod(Member& m) {
    m.created = true;
    m.running = false;
    m.pod.node.clear();
    m.pod.nominated_node.clear();
    m.pod.uid = fmt::format("uid-{}", ++uids_);
    m.pod.created = stamp();
    engine_.apply(PodUpsert{m.pod});
  }

  void complete_group(const std::string& name) {
    GroupRun& g = groups_[name];
    g.completed = true;
    std::vector<Member> kept;
    for (Member& m : g.members) {
      if (m.succeeded) {
        kept.push_back(m);
      } else if (m.running) {
        m.running = false;
        m.succeeded = true;
        m.pod.finished = true;
        m.pod.succeeded = true;
        engine_.apply(PodUpsert{m.pod});
        kept.push_back(m);
      } else if (m.created) {
        engine_.apply(PodRemove{m.pod.key});
      }
    }
    g.members = std::move(kept);
  }

  void delete_group(const std::string& name) {
    for (const Member& m : groups_[name].members) {
      if (m.created) engine_.apply(PodRemove{m.pod.key});
    }
    engine_.apply(GroupRemove{groups_[name].group.key});
    groups_.erase(name);
    std::erase(order_, name);
  }

  void remove_node(const std::string& node) {
    engine_.apply(NodeRemove{node});
    for (const auto& name : order_) {
      for (Member& m : groups_[name].members) {
        if (!m.running || m.pod.node != node) continue;
        engine_.apply(PodRemove{m.pod.key});
        create_pod(m);
      }
    }
  }

  Member* find(const std::string& key, std::string* group) {
    for (const auto& name : order_) {
      for (Member& m : groups_[name].members) {
        if (m.pod.key != key) continue;
        if (group != nullptr) *group = name;
        return &m;
      }
    }
    return nullptr;
  }

  void settle() {
    int quiet = 0;
    for (int cycle = 0; cycle < kMostCycles && quiet < 2; ++cycle) {
      const Plan plan = engine_.decide(now());
      bool changed = !plan.binds.empty() || !plan.evicts.empty() || !plan.phases.empty();
      for (const auto& b : plan.binds) {
        Member* m = find(b.pod, nullptr);
        if (m == nullptr) continue;
        m->running = true;
        m->pod.node = b.node;
        engine_.apply(PodUpsert{m->pod});
      }
      for (const auto& e : plan.evicts) {
        std::string group;
        Member* m = find(e.pod, &group);
        if (m == nullptr) continue;
        ++evicted_[group];
        evicted_pods_.insert(e.pod.substr(e.pod.find('/') + 1));
        engine_.apply(PodRemove{e.pod});
        create_pod(*m);
      }
      for (const auto& n : plan.nominations) {
        Member* m = find(n.pod, nullptr);
        if (m == nullptr || m->running) continue;
        m->pod.nominated_node = n.node;
        engine_.apply(PodUpsert{m->pod});
      }
      for (const auto& p : plan.phases) {
        for (auto& [name, g] : groups_) {
          if (g.group.key == p.group) g.phase = std::string(phase_name(p.phase));
        }
      }
      for (const auto& name : order_) {
        GroupRun& g = groups_[name];
        if (!pods_at_once_ && g.phase != "Pending" && !g.completed) {
          for (Member& m : g.members) {
            if (m.created) continue;
            create_pod(m);
            changed = true;
          }
        }
      }
      quiet = changed ? 0 : quiet + 1;
    }
    if (quiet < 2)
      failures_.push_back({fmt::format("at {} s", at_),
                           "the scheduler to settle",
                           "it still changes after 500 cycles"});
  }

  void expect(const std::string& step,
              const std::string& what,
              const std::string& wanted,
              const std::string& got) {
    if (wanted != got) failures_.push_back({step, what + " " + wanted, got});
  }

  void check(const std::string& step, const Value& expected) {
    for (const auto& [name_view, want] : json::object_at(expected, "groups")) {
      const std::string name(name_view);
      const auto it = groups_.find(name);
      if (it == groups_.end()) {
        failures_.push_back({step, "group " + name, "it does not exist"});
        continue;
      }
      const GroupRun& g = it->second;
      std::int64_t running = 0;
      std::int64_t succeeded = 0;
      for (const Member& m : g.members) {
        running += m.running ? 1 : 0;
        succeeded += m.succeeded ? 1 : 0;
      }
      const auto pending = static_cast<std::int64_t>(g.members.size()) - running - succeeded;
      const std::string state = running == 0 && pending == 0                ? "completed"
                                : running == 0                              ? "waiting"
                                : running + succeeded >= g.group.min_member ? "running"
                                                                            : "degraded";
      if (json::at(want, "state").is_string())
        expect(step, name + " state", json::text_at(want, "state"), state);
      if (json::at(want, "running").is_number()) {
        expect(step,
               name + " running",
               fmt::format("{}", json::int_at(want, "running")),
               fmt::format("{}", running));
      }
      if (json::at(want, "pending").is_number()) {
        expect(step,
               name + " pending",
               fmt::format("{}", json::int_at(want, "pending")),
               fmt::format("{}", pending));
      }
      if (json::at(want, "phase").is_string())
        expect(step, name + " phase", json::text_at(want, "phase"), g.phase);
    }
    std::map<std::string, std::int64_t> evicted;
    for (const auto& [name, n] : json::object_at(expected, "evicted")) {
      evicted[std::string(name)] = json::as_int(n);
      // A group that went away in this very step has had its evictions counted all the same.
      if (!groups_.contains(std::string(name))) {
        expect(step,
               "evictions of " + std::string(name),
               fmt::format("{}", json::as_int(n)),
               fmt::format("{}", evicted_[std::string(name)]));
      }
    }
    for (const auto& name : order_) {
      expect(step,
             "evictions of " + name,
             fmt::format("{}", evicted[name]),
             fmt::format("{}", evicted_[name]));
    }
    if (json::at(expected, "evicted_pods").is_array()) {
      std::set<std::string> wanted;
      for (const auto& p : json::array_at(expected, "evicted_pods")) {
        const std::string pod = json::text(p);
        wanted.insert(pod.substr(pod.find('/') == std::string::npos ? 0 : pod.find('/') + 1));
      }
      expect(step,
             "evicted pods",
             fmt::format("{}", fmt::join(wanted, " ")),
             fmt::format("{}", fmt::join(evicted_pods_, " ")));
    }
    for (const auto& [name, nodes] : json::object_at(expected, "placement")) {
      std::map<std::string, std::int64_t> wanted;
      std::map<std::string, std::int64_t> got;
      for (const auto& [node, n] : json::as_object(nodes)) {
        if (json::as_int(n) != 0) wanted[std::string(node)] = json::as_int(n);
      }
      if (!groups_.contains(std::string(name))) {
        failures_.push_back({step, "group " + std::string(name), "it does not exist"});
        continue;
      }
      for (const Member& m : groups_[std::string(name)].members) {
        if (m.running) ++got[m.pod.node];
      }
      const auto text = [](const std::map<std::string, std::int64_t>& m) {
        std::string out;
        for (const auto& [k, v] : m) out += fmt::format("{}:{} ", k, v);
        return out;
      };
      expect(step, "placement of " + std::string(name), text(wanted), text(got));
    }
  }

  const Value& file_;
  bool pods_at_once_;
  Engine engine_;
  std::map<std::string, Queue> queues_;
  std::map<std::string, GroupRun> groups_;
  std::vector<std::string> order_;
  std::map<std::string, std::int64_t> evicted_;
  std::set<std::string> evicted_pods_;
  Failures failures_;
  std::int64_t at_ = 0;
  std::int64_t ticks_ = 0;
  std::int64_t uids_ = 0;
};

bool claims(const std::string&, const Value& file) {
  return json::at(file, "config", "tiers").is_array() && json::at(file, "steps").is_array();
}

Failures run(const std::string&, const Value& file) {
  Failures all = check_file(file);
  if (!all.empty()) return all;
  all = Scenario(file, true).run();
  const Failures later = Scenario(file, false).run();
  all.insert(all.end(), later.begin(), later.end());
  return all;
}

const Registration kRegistration({"volcano", claims, run});

}  // namespace
}  // namespace muster::vectors
