/// Topic `tenants`: queues, as the scheduler counts them where it is at hand, else as their objects
/// say.
#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "kube/kinds/pod.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "portal/topics/topics.h"

namespace muster::portal {
namespace {

json::Value amounts(const Amounts& amounts) {
  return {{"gpus", amounts.gpus}, {"cpuMilli", amounts.cpu_milli}, {"memoryBytes", amounts.memory}};
}

Amounts amounts_at(const json::Value& list) {
  Amounts found;
  for (const auto& [name, value] : kube::resource_amounts(list)) {
    if (name == "cpu") found.cpu_milli = value;
    if (name == "memory") found.memory = value;
    if (name.ends_with("/gpu")) found.gpus = static_cast<double>(value);
  }
  return found;
}

struct Row {
  std::string parent;
  json::Object value;
};

class TenantsSource final : public Source {
 public:
  TenantsSource(World& world, User user) : world_(world), user_(std::move(user)) {}
  std::uint64_t version() override { return world_.tally.version(); }
  [[nodiscard]] bool windowed() const override { return false; }

  std::string value() override {
    Amounts total;
    for (const auto& [name, node] : world_.nodes.all()) {
      total.gpus += node.gpus;
      total.cpu_milli += node.cpu_milli;
      total.memory += node.memory;
    }
    std::map<std::string, QueueFacts> counted;
    if (world_.options.queues) {
      for (QueueFacts& queue : world_.options.queues()) counted[queue.name] = std::move(queue);
    }
    std::map<std::string, Row> rows;
    for (const auto& [key, object] : world_.informers.get(client::resources::kQueues).objects())
      rows[key] = row(*object, counted[key], total);
    for (const auto& [name, queue] : counted) {
      if (!rows.contains(name)) rows[name] = row(json::Object{}, queue, total);
    }
    return json::dump(in_order(rows));
  }

 private:
  Row row(const json::Value& object, const QueueFacts& counted, const Amounts& total) {
    Row row;
    const std::string name =
        counted.name.empty() ? std::string(kube::name_of(object)) : counted.name;
    row.parent = json::text_at(object, "spec", "parent");
    if (row.parent.empty()) row.parent = counted.parent;
    const json::Value& weight = json::at(object, "spec", "weight");
    const json::Value& capability = json::at(object, "spec", "capability");
    const std::string_view state = json::string_at(object, "status", "state");
    const bool is_vc = !counted.vc.empty();
    const QueueTally jobs = world_.tally.queue(world_.jobs.table().words().number(name));
    row.value = {
        {"name", name},
        {"kind", is_vc ? "vc" : "queue"},
        {"parent", row.parent},
        {"depth", 0},
        {"open", state.empty() || state == "Open"},
        {"weight", weight.is_null() ? json::Value(nullptr) : weight},
        {"used", amounts(counted.allocated)},
        {"oppo", amounts({})},
        {"lent", amounts({})},
        {"guarantee", amounts(amounts_at(json::at(object, "spec", "guarantee", "resource")))},
        {"deserved", counted.name.empty() ? json::Value(nullptr) : amounts(counted.deserved)},
        {"capability",
         counted.capability ? amounts(*counted.capability)
         : capability.is_object() && !capability.get_object().empty()
             ? amounts(amounts_at(capability))
             : json::Value(nullptr)},
        {"total", amounts(total)},
        {"waiting", {{"jobs", jobs.waiting}, {"gpus", jobs.waiting_gpus}}},
        {"running", jobs.running},
        {"badCells", 0},
        {"mine",
         user_.admin || user_.vcs.empty() ||
             std::find(user_.vcs.begin(), user_.vcs.end(), is_vc ? counted.vc : name) !=
                 user_.vcs.end()}};
    return row;
  }

  /// Parents before children, each with how deep it is.
  static json::Array in_order(std::map<std::string, Row>& rows) {
    json::Array list;
    const std::function<void(const std::string&, int)> add = [&](const std::string& parent,
                                                                 int depth) {
      for (auto& [name, row] : rows) {
        const bool child =
            parent.empty() ? row.parent.empty() || !rows.contains(row.parent) || row.parent == name
                           : row.parent == parent && name != parent;
        if (!child || row.value.empty() || depth > 16) continue;
        json::Object value = std::move(row.value);
        row.value.clear();
        value["depth"] = depth;
        list.push_back(std::move(value));
        add(name, depth + 1);
      }
    };
    add("", 0);
    return list;
  }

  World& world_;
  User user_;
};

}  // namespace

SourcePtr tenants_topic(World& world, const User& user) {
  return std::make_shared<TenantsSource>(world, user);
}

}  // namespace muster::portal
