#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "pai/protocol/job.h"

namespace muster::pai {
namespace {

tl::unexpected<Refusal> refuse(std::string message) {
  return tl::unexpected(invalid(std::move(message)));
}

std::int64_t parts(std::int64_t wanted, std::int64_t unit) {
  return wanted <= 0 || unit <= 0 ? 0 : (wanted + unit - 1) / unit;
}

/// The smallest of each resource over these types, so that every one of them would do.
Sku smallest(const std::vector<std::string>& types, const Facts& facts) {
  Sku unit;
  bool first = true;
  for (const std::string& type : types) {
    const auto found = facts.sku_types.find(type);
    if (found == facts.sku_types.end()) continue;
    const Sku& sku = found->second;
    unit = first ? sku
                 : Sku{std::min(unit.gpu, sku.gpu),
                       std::min(unit.cpu, sku.cpu),
                       std::min(unit.memory_mb, sku.memory_mb)};
    first = false;
  }
  return unit;
}

std::vector<std::string> names_of(const Facts& facts) {
  std::vector<std::string> names;
  for (const auto& [name, sku] : facts.sku_types) names.push_back(name);
  return names;
}

std::string not_configured(const Role& role, std::int64_t wanted, const char* what) {
  return fmt::format(
      "Taskrole {0} requests {1} {2}, but SKU does not configure {2}. "
      "Please contact admin if the taskrole needs {2} resource.",
      role.name,
      wanted,
      what);
}

/// Roles named in the extras: that they exist, and what they may not say together.
std::string wrong_extras(const Job& job) {
  const json::Value& named = json::at(*job.protocol, "extras", "hivedScheduler", "taskRoles");
  for (const auto& member : json::as_object(named)) {
    const auto same = [&](const Role& role) { return role.name == std::string_view(member.key()); };
    const auto role = std::find_if(job.roles.begin(), job.roles.end(), same);
    if (role == job.roles.end())
      return fmt::format("Taskrole {} does not exist.", std::string_view(member.key()));
    if (!role->sku_type.empty() && !role->pinned_cell.empty())
      return fmt::format("Taskrole {} has both skuType and pinnedCellId, only one is allowed.",
                         role->name);
  }
  return {};
}

std::string wrong_type(const Job& job, const Role& role, const Facts& facts) {
  if (role.sku_type.empty()) return {};
  if (!facts.sku_types.contains(role.sku_type))
    return fmt::format("Taskrole {} has unknown skuType {}, allow {}.",
                       role.name,
                       role.sku_type,
                       join(names_of(facts), ","));
  const auto cluster = facts.virtual_clusters.find(job.virtual_cluster);
  if (cluster == facts.virtual_clusters.end() || job.priority_class == "oppo") return {};
  const auto& own = cluster->second.sku_types;
  if (std::find(own.begin(), own.end(), role.sku_type) == own.end())
    return fmt::format("Taskrole {} has skuType {}, VC {} only allows {}.",
                       role.name,
                       role.sku_type,
                       job.virtual_cluster,
                       join(own, ","));
  return {};
}

/// Roles of one affinity group are placed together, so they must want the same cells.
std::string mixed_group(const Job& job) {
  for (const Role& role : job.roles) {
    for (const Role& other : job.roles) {
      if (!role.affinity_group.empty() && role.affinity_group == other.affinity_group &&
          (role.sku_type != other.sku_type || role.pinned_cell != other.pinned_cell))
        return fmt::format("AffinityGroup {} has inconsistent skuType or pinnedCellId.",
                           role.affinity_group);
    }
  }
  return {};
}

/// What one cell of the role is, when HiveD may choose it.
Sku unit_of(const Job& job, const Role& role, const Facts& facts) {
  if (!role.sku_type.empty()) return smallest({role.sku_type}, facts);
  const auto cluster = facts.virtual_clusters.find(job.virtual_cluster);
  if (job.priority_class == "oppo" || cluster == facts.virtual_clusters.end())
    return smallest(names_of(facts), facts);
  return smallest(cluster->second.sku_types, facts);
}

}  // namespace

Answer<Job> check_cells(Job job, const Facts& facts) {
  if (std::string wrong = wrong_extras(job); !wrong.empty()) return refuse(std::move(wrong));
  if (!facts.hived) return job;
  for (const Role& role : job.roles) {
    if (std::string wrong = wrong_type(job, role, facts); !wrong.empty())
      return refuse(std::move(wrong));
  }
  if (std::string wrong = mixed_group(job); !wrong.empty()) return refuse(std::move(wrong));
  std::int64_t total = 0;
  for (Role& role : job.roles) {
    const Sku unit = unit_of(job, role, facts);
    if (role.gpu > 0 && unit.gpu == 0) return refuse(not_configured(role, role.gpu, "GPU"));
    if (role.cpu > 0 && unit.cpu == 0) return refuse(not_configured(role, role.cpu, "CPU"));
    if (role.memory_mb > 0 && unit.memory_mb == 0)
      return refuse(not_configured(role, role.memory_mb, "memoryMB"));
    role.skus = std::max({std::int64_t{1},
                          parts(role.gpu, unit.gpu),
                          parts(role.cpu, unit.cpu),
                          parts(role.memory_mb, unit.memory_mb)});
    total += role.skus * role.instances;
  }
  const auto cluster = facts.virtual_clusters.find(job.virtual_cluster);
  if (cluster != facts.virtual_clusters.end() && cluster->second.quota && job.gang &&
      job.priority_class != "oppo" && total > *cluster->second.quota)
    return refuse(fmt::format("Job requests {} SKUs, exceeds maximum {} SKUs in VC {}.",
                              total,
                              *cluster->second.quota,
                              job.virtual_cluster));
  return job;
}

Answer<Job> check_storages(Job job, const Facts& facts) {
  const auto add = [&](std::string storage, std::string path) {
    if (path.empty()) path = "/mnt/" + storage;
    job.mounts.push_back({std::move(storage), std::move(path)});
  };
  const json::Value& listed = json::at(*job.protocol, "extras", "storages");
  for (const json::Value& each : json::as_array(listed))
    add(json::text_at(each, "name"), json::text_at(each, "mountPath"));
  if (listed.is_array() && listed.get_array().empty()) {
    for (const std::string& each : facts.default_storages) add(each, "");
  }
  for (const json::Value& plugin :
       json::array_at(*job.protocol, "extras", "com.microsoft.pai.runtimeplugin")) {
    if (json::string_at(plugin, "plugin") != "teamwise_storage") continue;
    const json::Value& names = json::at(plugin, "parameters", "storageConfigNames");
    for (const json::Value& each : json::as_array(names)) add(json::text(each), "");
    if (json::as_array(names).empty()) {
      for (const std::string& each : facts.default_storages) add(each, "");
    }
  }
  for (const Mount& mount : job.mounts) {
    if (!facts.storages.contains(mount.storage))
      return tl::unexpected(
          Refusal{404, "NoStorageError", fmt::format("Storage {} is not found.", mount.storage)});
  }
  return job;
}

}  // namespace muster::pai
