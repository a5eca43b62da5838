/// Virtual clusters, sku types, storages, and Kubernetes' own lists for administrators.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "kube/meta.h"
#include "pai/people/records.h"
#include "pai/rest/jobs.h"
#include "pai/rest/routes.h"

namespace muster::pai::rest {
namespace {

Refusal no_vc(std::string_view name) {
  return {.status = 404,
          .code = "NoVirtualClusterError",
          .message = fmt::format("Virtual cluster {} is not found.", name)};
}

json::Object amounts_json(const Amounts& amounts) {
  return {{"cpu", amounts.cpu},
          {"memory", amounts.memory_mb},
          {"gpu", amounts.gpu},
          {"vCores", amounts.cpu},
          {"GPUs", amounts.gpu}};
}

json::Object vc_json(const Use& use, const VcUse& vc) {
  const auto percent = [&use](std::int64_t gpus) {
    return use.cluster.gpu == 0 ? 0.0
                                : std::round(10'000.0 * static_cast<double>(gpus) /
                                             static_cast<double>(use.cluster.gpu)) /
                                      100.0;
  };
  return {{"capacity", percent(vc.total.gpu)},
          {"usedCapacity", percent(vc.used.gpu)},
          {"dedicated", false},
          {"resourcesUsed", amounts_json(vc.used)},
          {"resourcesGuaranteed", amounts_json(vc.guaranteed)},
          {"resourcesTotal", amounts_json(vc.total)},
          {"maxCapacity", percent(vc.total.gpu)}};
}

Task<Answer<Reply>> list_vcs(Cells& cells, Call& call) {
  const auto use = co_await cells.use();
  json::Object out;
  if (call.target.has("nodes")) {
    for (const auto& [name, node] : use->nodes)
      out[name] = json::Object{
          {"gpuUsed", node.gpu_used},
          {"gpuAvailable",
           node.healthy ? std::max<std::int64_t>(0, node.gpu_total - node.gpu_used) : 0},
          {"gpuTotal", node.gpu_total}};
    co_return answered(std::move(out));
  }
  for (const auto& [name, vc] : use->vcs) out[name] = vc_json(*use, vc);
  co_return answered(std::move(out));
}

Task<Answer<Reply>> show_vc(Cells& cells, Call& call) {
  const auto use = co_await cells.use();
  const auto found = use->vcs.find(call.values[0]);
  if (found == use->vcs.end()) co_return refuse(no_vc(call.values[0]));
  co_return answered(vc_json(*use, found->second));
}

Task<Answer<Reply>> sku_types(Cells& cells, std::string vc) {
  const Facts& facts = cells.facts();
  json::Object out;
  const auto add = [&out](const std::string& name, const Sku& sku) {
    out[name] = json::Object{{"cpu", sku.cpu}, {"memory", sku.memory_mb}, {"gpu", sku.gpu}};
  };
  if (vc.empty()) {
    for (const auto& [name, sku] : facts.sku_types) add(name, sku);
    co_return answered(std::move(out));
  }
  const auto found = facts.virtual_clusters.find(vc);
  if (found == facts.virtual_clusters.end()) co_return refuse(no_vc(vc));
  for (const std::string& name : found->second.sku_types) {
    const auto sku = facts.sku_types.find(name);
    if (sku != facts.sku_types.end()) add(name, sku->second);
  }
  co_return answered(std::move(out));
}

Task<Answer<Reply>> change_vc(Call& call) {
  const std::string& name = call.values[0];
  const bool good = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
  if (!good)
    co_return refuse(bad_parameters(fmt::format(
        "\"{}\" is not a name of a virtual cluster: wanted letters, digits and \"_\"", name)));
  co_return refuse(400,
                   "NotImplementedError",
                   "Virtual clusters are changed in HiveD's configuration, with paictl or 'muster "
                   "hived apply FILE'.");
}

// Storages: claims in the jobs' namespace that a group of the user's names.

json::Object storage_json(const Storages& seen, const json::Value& claim) {
  const std::string name(kube::name_of(claim));
  return {{"name", name},
          {"share", kube::label(claim, "share") != "false"},
          {"volumeName", json::string_at(claim, "spec", "volumeName")},
          {"default", contains(seen.defaults, name)}};
}

Task<Answer<Reply>> list_storages(People& people, client::Client& client, Call& call) {
  const auto seen = co_await storages_of(people, client, call.caller.user);
  if (!seen) co_return refuse(seen.error());
  const bool defaults_only = call.target.get("default") == "true";
  json::Array storages;
  for (const json::Value& claim : seen->claims) {
    const std::string_view name = kube::name_of(claim);
    if (!contains(seen->allowed, name) || (defaults_only && !contains(seen->defaults, name)))
      continue;
    storages.push_back(storage_json(*seen, claim));
  }
  co_return answered(json::Object{{"storages", std::move(storages)}});
}

/// What a volume is, in OpenPAI's four words.
void describe_volume(const json::Value& volume, json::Object& out) {
  const json::Value& spec = json::at(volume, "spec");
  if (const json::Value& nfs = json::at(spec, "nfs"); nfs.is_object()) {
    out["type"] = "nfs";
    out["data"] =
        json::Object{{"server", json::at(nfs, "server")}, {"path", json::at(nfs, "path")}};
  } else if (const json::Value& file = json::at(spec, "azureFile"); file.is_object()) {
    out["type"] = "azureFile";
    out["data"] = json::Object{{"shareName", json::at(file, "shareName")}};
  } else if (json::string_at(spec, "flexVolume", "driver") == "azure/blobfuse") {
    out["type"] = "azureBlob";
    out["data"] =
        json::Object{{"containerName", json::at(spec, "flexVolume", "options", "container")}};
  } else if (json::string_at(spec, "csi", "driver").find("smb") != std::string_view::npos) {
    out["type"] = "samba";
    out["data"] = json::Object{{"address", json::at(spec, "csi", "volumeAttributes", "source")}};
  } else {
    out["type"] = "other";
    out["data"] = json::Object();
  }
  const json::Array& modes = json::array_at(spec, "accessModes");
  out["readOnly"] = !modes.empty() && std::all_of(modes.begin(), modes.end(), [](const auto& mode) {
    return json::as_string(mode) == "ReadOnlyMany";
  });
  const json::Value& options = json::at(spec, "mountOptions");
  out["mountOptions"] = options.is_array() ? options : json::Value(json::Array());
}

Task<Answer<Reply>> show_storage(People& people, client::Client& client, Call& call) {
  const auto seen = co_await storages_of(people, client, call.caller.user);
  if (!seen) co_return refuse(seen.error());
  const std::string& name = call.values[0];
  const auto found =
      std::find_if(seen->claims.begin(), seen->claims.end(), [&](const json::Value& claim) {
        return kube::name_of(claim) == name;
      });
  if (found == seen->claims.end())
    co_return refuse(404, "NoStorageError", fmt::format("Storage {} is not found.", name));
  if (!contains(seen->allowed, name))
    co_return refuse(403,
                     "ForbiddenUserError",
                     fmt::format("User {} is not allowed to access {}.", call.caller.user, name));
  json::Object out = storage_json(*seen, *found);
  const auto volume = co_await client.get(
      client::resources::kPersistentVolumes, "", json::text_at(*found, "spec", "volumeName"));
  describe_volume(volume ? *volume : json::null_value(), out);
  co_return answered(std::move(out));
}

/// In the shape of Prometheus' alert manager, which OpenPAI passes on: nodes that are not ready, for
/// administrators.
Task<Answer<Reply>> list_alerts(Cells& cells, Call& call) {
  json::Array alerts;
  for (const auto& [name, node] : cells.nodes()) {
    if (!call.caller.admin || kube::condition_true(*node, "Ready")) continue;
    alerts.push_back(json::Object{
        {"labels", {{"alertname", "NodeNotReady"}, {"node_name", name}, {"severity", "error"}}},
        {"annotations", {{"summary", fmt::format("Node {} is not ready.", name)}}},
        {"startsAt", json::at(kube::condition(*node, "Ready"), "lastTransitionTime")},
        {"status", {{"state", "active"}}}});
  }
  co_return answered(std::move(alerts));
}

// Kubernetes' own lists.

Task<Answer<Reply>> raw_list(client::Client& client, std::string path) {
  auto listed = co_await client.raw("GET", std::move(path), nullptr);
  if (!listed) co_return refuse(listed.error());
  co_return answered(std::move(*listed));
}

}  // namespace

Task<Answer<Storages>> storages_of(People& people, client::Client& client, std::string user) {
  client::ListOptions where;
  where.ns = kJobsNamespace;
  auto listed = co_await client.list(client::resources::kPersistentVolumeClaims, where);
  if (!listed) co_return refuse(listed.error());
  Storages seen;
  seen.claims = std::move(listed->items);
  const UserRecord* known = people.directory().find_user(user);
  if (known == nullptr) co_return seen;
  seen.allowed = people.directory().storages(*known);
  // The first that a group names is its default.
  for (const std::string& name : known->groups) {
    const GroupRecord* group = people.directory().find_group(name);
    if (group == nullptr) continue;
    const auto storages = group->storages();
    if (!storages.empty() && !contains(seen.defaults, storages.front()))
      seen.defaults.push_back(storages.front());
  }
  co_return seen;
}

std::vector<Route> cluster_routes(People& people, Cells& cells, client::Client& client) {
  const Run skus = [&cells](Call& call) {
    return sku_types(cells, std::string(call.target.get("vc")));
  };
  const Run change = [](Call& call) { return change_vc(call); };
  return {
      {"GET", "virtual-clusters", Who::kUser, [&](Call& call) { return list_vcs(cells, call); }},
      {"GET", "virtual-clusters/:vc", Who::kUser, [&](Call& call) { return show_vc(cells, call); }},
      {"GET",
       "virtual-clusters/:vc/sku-types",
       Who::kUser,
       [&](Call& call) { return sku_types(cells, call.values[0]); }},
      {"PUT", "virtual-clusters/:vc", Who::kAdmin, change},
      {"DELETE", "virtual-clusters/:vc", Who::kAdmin, change},
      {"PUT", "virtual-clusters/:vc/status", Who::kAdmin, change},
      {"GET", "cluster/sku-types", Who::kUser, skus},
      {"GET",
       "storages",
       Who::kUser,
       [&](Call& call) { return list_storages(people, client, call); }},
      {"GET",
       "storages/:storage",
       Who::kUser,
       [&](Call& call) { return show_storage(people, client, call); }},
      {"GET", "alerts", Who::kUser, [&](Call& call) { return list_alerts(cells, call); }},
      {"GET",
       "kubernetes/nodes",
       Who::kAdmin,
       [&client](Call&) { return raw_list(client, client::resources::kNodes.path("")); }},
      {"GET",
       "kubernetes/pods",
       Who::kAdmin,
       [&client](Call& call) {
         return raw_list(
             client, client::resources::kPods.path(percent_encode(call.target.get("namespace"))));
       }},
  };
}

}  // namespace muster::pai::rest
