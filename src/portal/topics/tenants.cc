#include "portal/topics/tenants.h"

#include <algorithm>
#include <functional>
#include <map>

#include "kube/kinds/pod.h"
#include "kube/meta.h"

namespace muster::portal {
namespace {

json::Value amounts(const Amounts& amounts) {
  return {{"gpus", amounts.gpus}, {"cpuMilli", amounts.cpu_milli}, {"memoryBytes", amounts.memory}};
}

json::Value amounts(const std::optional<Amounts>& some) {
  return some ? amounts(*some) : json::Value(nullptr);
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

/// OpenPAI counts whole cores and mebibytes.
Amounts amounts_of(const pai::Amounts& use) {
  return {static_cast<double>(use.gpu), use.cpu * 1000, use.memory_mb * 1024 * 1024};
}

void count_jobs(TenantFacts& tenant, const Share& jobs) {
  tenant.waiting = jobs.waiting;
  tenant.waiting_gpus = jobs.waiting_gpus;
  tenant.running = jobs.running;
  tenant.oppo = {static_cast<double>(jobs.oppo_gpus), jobs.oppo_cpu_milli, jobs.oppo_memory};
}

/// As OpenPAI's REST counts them.
std::vector<TenantFacts> vcs_of(World& world, const pai::Use& use) {
  std::vector<TenantFacts> tenants;
  for (const auto& [name, vc] : use.vcs) {
    TenantFacts tenant;
    tenant.name = name;
    tenant.vc = true;
    tenant.used = amounts_of(vc.used);
    tenant.lent = amounts_of(vc.lent);
    tenant.guarantee = amounts_of(vc.guaranteed);
    tenant.total = amounts_of(vc.total);
    tenant.bad_cells = vc.bad_cells;
    count_jobs(tenant, world.tally.vc(world.jobs.table().words().number(name)));
    tenants.push_back(std::move(tenant));
  }
  return tenants;
}

TenantFacts queue_of(World& world,
                     const json::Value& object,
                     const QueueFacts& counted,
                     const Amounts& total) {
  TenantFacts tenant;
  tenant.name = counted.name.empty() ? std::string(kube::name_of(object)) : counted.name;
  tenant.parent = json::text_at(object, "spec", "parent");
  if (tenant.parent.empty()) tenant.parent = counted.parent;
  if (const json::Value& weight = json::at(object, "spec", "weight"); weight.is_number())
    tenant.weight = json::as_int(weight);
  const std::string_view state = json::string_at(object, "status", "state");
  tenant.open = state.empty() || state == "Open";
  tenant.used = counted.allocated;
  tenant.guarantee = amounts_at(json::at(object, "spec", "guarantee", "resource"));
  if (!counted.name.empty()) tenant.deserved = counted.deserved;
  const json::Value& capability = json::at(object, "spec", "capability");
  if (counted.capability)
    tenant.capability = counted.capability;
  else if (capability.is_object() && !capability.get_object().empty())
    tenant.capability = amounts_at(capability);
  tenant.total = total;
  count_jobs(tenant, world.tally.queue(world.jobs.table().words().number(tenant.name)));
  // Jobs are followed once somebody visits; what waits is known to the scheduler before.
  if (!world.jobs.ready())
    tenant.waiting_gpus =
        static_cast<std::int64_t>(std::max(0.0, counted.requested.gpus - counted.allocated.gpus));
  return tenant;
}

/// Queues, as the scheduler counts them where it is at hand, else as their objects say.
std::vector<TenantFacts> queues_of(World& world) {
  Amounts total;
  for (const auto& [name, node] : world.nodes.all()) {
    total.gpus += node.gpus;
    total.cpu_milli += node.cpu_milli;
    total.memory += node.memory;
  }
  std::map<std::string, QueueFacts> counted;
  if (world.options.queues) {
    for (QueueFacts& queue : world.options.queues()) counted[queue.name] = std::move(queue);
  }
  std::map<std::string, TenantFacts> rows;
  for (const auto& [key, object] : world.informers.get(client::resources::kQueues).objects())
    rows[key] = queue_of(world, *object, counted[key], total);
  for (const auto& [name, queue] : counted) {
    if (!name.empty() && !rows.contains(name))
      rows[name] = queue_of(world, json::Object{}, queue, total);
  }
  std::vector<TenantFacts> tenants;
  for (auto& [name, row] : rows) tenants.push_back(std::move(row));
  return tenants;
}

class TenantsSource final : public Source {
 public:
  TenantsSource(World& world, User user) : world_(world), user_(std::move(user)) {}
  /// Cells are counted elsewhere, and a little later than jobs.
  std::uint64_t version() override {
    auto use = world_.options.cells ? world_.options.cells() : nullptr;
    if (use != use_) ++counts_;
    use_ = std::move(use);
    return world_.tally.version() + counts_;
  }
  [[nodiscard]] bool windowed() const override { return false; }

  std::string value() override {
    std::map<std::string, Row> rows;
    for (const TenantFacts& tenant : tenants_of(world_))
      rows[tenant.name] = {tenant.parent, row(tenant)};
    return json::dump(in_order(rows));
  }

 private:
  struct Row {
    std::string parent;
    json::Object value;
  };

  [[nodiscard]] json::Object row(const TenantFacts& tenant) const {
    const bool mine = user_.admin || user_.vcs.empty() ||
                      std::find(user_.vcs.begin(), user_.vcs.end(), tenant.name) != user_.vcs.end();
    return {{"name", tenant.name},
            {"kind", tenant.vc ? "vc" : "queue"},
            {"parent", tenant.parent},
            {"depth", 0},
            {"open", tenant.open},
            {"weight", tenant.weight ? json::Value(*tenant.weight) : json::Value(nullptr)},
            {"used", amounts(tenant.used)},
            {"oppo", amounts(tenant.oppo)},
            {"lent", amounts(tenant.lent)},
            {"guarantee", amounts(tenant.guarantee)},
            {"deserved", amounts(tenant.deserved)},
            {"capability", amounts(tenant.capability)},
            {"total", amounts(tenant.total)},
            {"waiting", {{"jobs", tenant.waiting}, {"gpus", tenant.waiting_gpus}}},
            {"running", tenant.running},
            {"badCells", tenant.bad_cells},
            {"mine", mine}};
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
  std::shared_ptr<const pai::Use> use_;
  std::uint64_t counts_ = 0;
};

}  // namespace

std::vector<TenantFacts> tenants_of(World& world) {
  const auto use = world.options.cells ? world.options.cells() : nullptr;
  return use ? vcs_of(world, *use) : queues_of(world);
}

SourcePtr tenants_topic(World& world, const User& user) {
  return std::make_shared<TenantsSource>(world, user);
}

}  // namespace muster::portal
