// Node: registers itself with its status.
#include <fmt/core.h>

#include "base/strings.h"
#include "kube/kinds/causes.h"
#include "kube/kinds/defaults.h"
#include "kube/kinds/families.h"
#include "kube/kinds/kind.h"
#include "kube/kinds/names.h"
#include "kube/kinds/put.h"
#include "kube/kinds/rules.h"
#include "kube/kinds/validate.h"
#include "kube/names.h"
#include "kube/table/table_cells.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Object;
using json::Value;

/// The old field is the first of the new one's; where they differ, the old one counts.
void default_pod_ranges(Object& object) {
  Object* spec = find(object, "spec");
  if (spec == nullptr) return;
  Value& ranges = (*spec)["podCIDRs"];
  const Value* first = spec->if_contains("podCIDR");
  const std::string given(first == nullptr ? "" : json::as_string(*first));
  const bool has = ranges.is_array() && !ranges.get_array().empty();
  if (!given.empty() && (!has || json::as_string(ranges.get_array()[0]) != given))
    ranges = Array{Value(given)};
  else if (given.empty() && has)
    (*spec)["podCIDR"] = ranges.get_array()[0];
  else if (!has)
    spec->erase("podCIDRs");
}

/// A node that says nothing of what it can hand out hands out all it has.
void default_node(Object& object) {
  default_pod_ranges(object);
  Object& status = object_at(object, "status");
  if (Object* capacity = find(status, "capacity");
      capacity != nullptr && !capacity->empty() && find(status, "allocatable") == nullptr) {
    Value all = *capacity;
    status["allocatable"] = std::move(all);
  }
  // Plain structs of Go, printed whether they say something or not.
  put(object_at(object_at(status, "daemonEndpoints"), "kubeletEndpoint"), "Port", 0);
  Object& info = object_at(status, "nodeInfo");
  for (const std::string_view key : {"machineID",
                                     "systemUUID",
                                     "bootID",
                                     "kernelVersion",
                                     "osImage",
                                     "containerRuntimeVersion",
                                     "kubeletVersion",
                                     "kubeProxyVersion",
                                     "operatingSystem",
                                     "architecture"}) {
    put(info, key, "");
  }
}

void validate_pod_ranges(const Value& node, const Value* old, Causes& causes) {
  const Value& all = json::at(node, "spec", "podCIDRs");
  const Array& ranges = json::as_array(all);
  int families[2] = {0, 0};
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    ++families[json::as_string(ranges[i]).find(':') != std::string_view::npos ? 1 : 0];
    if (is_address_range(json::as_string(ranges[i]))) continue;
    causes.invalid(fmt::format("spec.podCIDRs[{}]", i),
                   shown(ranges[i]),
                   "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
  }
  if (families[0] > 1 || families[1] > 1)
    causes.invalid(
        "spec.podCIDRs", shown(all), "may specify no more than one CIDR for each IP family");
  if (old == nullptr) return;
  const Value& before = json::at(*old, "spec", "podCIDRs");
  if (!json::as_array(before).empty() && !json::equal(before, all))
    causes.forbidden("spec.podCIDRs",
                     "node updates may not change podCIDR except from \"\" to valid");
  const std::string_view provider = json::string_at(*old, "spec", "providerID");
  if (!provider.empty() && provider != json::string_at(node, "spec", "providerID"))
    causes.invalid("spec.providerID", "null", "field cannot be modified once set");
}

void validate_node(const Value& node, const Value* old, Causes& causes) {
  validate_taints(json::at(node, "spec", "taints"), "metadata.taints", causes);
  validate_pod_ranges(node, old, causes);
  validate_resource_list(json::at(node, "status", "capacity"), "status.capacity", false, causes);
  validate_resource_list(
      json::at(node, "status", "allocatable"), "status.allocatable", false, causes);
}

std::string roles(const Value& node) {
  std::vector<std::string> found;
  for (const auto& member : json::object_at(node, "metadata", "labels")) {
    const std::string_view key = member.key();
    if (key.starts_with(names::kubernetes::kRolePrefix)) {
      if (key.size() > names::kubernetes::kRolePrefix.size())
        found.emplace_back(key.substr(names::kubernetes::kRolePrefix.size()));
    } else if (key == names::kubernetes::kRole && !json::as_string(member.value()).empty()) {
      found.push_back(json::text(member.value()));
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found.empty() ? "<none>" : join(found, ",");
}

std::string address(const Value& node, std::string_view type) {
  for (const Value& one : json::array_at(node, "status", "addresses")) {
    if (json::string_at(one, "type") == type) return json::text_at(one, "address");
  }
  return "<none>";
}

Array node_cells(const Value& node, Time now) {
  const Value& ready = condition(node, "Ready");
  std::string status = "Unknown";
  if (ready.is_object()) status = json::string_at(ready, "status") == "True" ? "Ready" : "NotReady";
  if (json::bool_at(node, "spec", "unschedulable")) status += ",SchedulingDisabled";
  const Value& info = json::at(node, "status", "nodeInfo");
  const auto text = [&](std::string_view key) {
    std::string is = json::text_at(info, key);
    return is.empty() ? std::string("<unknown>") : is;
  };
  std::string kernel = text("kernelVersion");
  const std::string architecture = json::text_at(info, "architecture");
  if (!architecture.empty() && kernel != "<unknown>") kernel += fmt::format(" ({})", architecture);
  return {name_of(node),
          status,
          roles(node),
          age_of(creation_time(node), now),
          json::at(info, "kubeletVersion").is_null() ? Value("") : json::at(info, "kubeletVersion"),
          address(node, "InternalIP"),
          address(node, "ExternalIP"),
          text("osImage"),
          kernel,
          text("containerRuntimeVersion")};
}

}  // namespace

std::vector<KindRules> families::node() {
  using namespace columns;
  return {{.group = "",
           .kind = "Node",
           .defaults = default_node,
           .defaults_status = true,
           .validate = validate_node,
           .columns = {name_column(),
                       text("Status"),
                       text("Roles"),
                       text("Age"),
                       text("Version"),
                       text("Internal-IP", kWide),
                       text("External-IP", kWide),
                       text("OS-Image", kWide),
                       text("Kernel-Version", kWide),
                       text("Container-Runtime", kWide)},
           .cells = node_cells,
           .fields = {"metadata.name", "spec.unschedulable"},
           .registers_with_status = true,
           .metadata_with_status = true}};
}

void validate_taints(const json::Value& taints, const std::string& field, Causes& causes) {
  std::set<std::string> seen;
  const json::Array& list = json::as_array(taints);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", field, i);
    const std::string_view key = json::string_at(list[i], "key");
    const std::string_view value = json::string_at(list[i], "value");
    const std::string_view effect = json::string_at(list[i], "effect");
    if (!check_label_key(key).empty()) {
      for (const std::string& problem : qualified_name_problems(key))
        causes.invalid(here + ".key", quoted(key), problem);
    }
    causes.check(here + ".value", value, check_label_value(value));
    validate_enum(json::at(list[i], "effect"),
                  here + ".effect",
                  {"NoSchedule", "PreferNoSchedule", "NoExecute"},
                  causes);
    if (!seen.insert(fmt::format("{}:{}", key, effect)).second) {
      causes.duplicate(here,
                       json::dump(list[i]) + ": taints must be unique by key and effect pair");
    }
  }
}

}  // namespace muster::kube
