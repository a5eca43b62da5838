#include "kube/kinds/pod.h"

#include <algorithm>
#include <limits>

#include "kube/kinds/defaults.h"
#include "kube/kinds/families.h"
#include "kube/kinds/rules.h"
#include "kube/table/table_cells.h"

namespace muster::kube {
namespace {

std::int64_t add_clamped(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum))
    return b > 0 ? std::numeric_limits<std::int64_t>::max()
                 : std::numeric_limits<std::int64_t>::min();
  return sum;
}

void add_to(ResourceAmounts& total, const ResourceAmounts& more) {
  for (const auto& [name, amount] : more) {
    std::int64_t& here = total[name];
    here = add_clamped(here, amount);
  }
}

void raise_to(ResourceAmounts& total, const ResourceAmounts& floor) {
  for (const auto& [name, amount] : floor) {
    std::int64_t& here = total[name];
    here = std::max(here, amount);
  }
}

std::int64_t amount_of(std::string_view resource, const json::Value& value) {
  if (value.is_int64()) {
    const std::int64_t units = value.get_int64();
    if (resource != "cpu") return units;
    return Quantity::from_units(units).milli();
  }
  const auto quantity =
      parse_quantity(value.is_string() ? std::string(json::as_string(value)) : json::dump(value));
  if (!quantity) return 0;
  return resource == "cpu" ? quantity->milli() : quantity->units();
}

/// cpu, memory and huge pages are what pod-level resources may carry.
bool pod_level(std::string_view resource) {
  return resource == "cpu" || resource == "memory" || resource.starts_with("hugepages-");
}

ResourceAmounts pod_amounts(const json::Value& pod, std::string_view which) {
  const json::Value& spec = json::at(pod, "spec");
  ResourceAmounts total;
  for (const json::Value& container : json::array_at(spec, "containers")) {
    add_to(total, resource_amounts(json::at(container, "resources", which)));
  }
  ResourceAmounts sidecars;  // restartable init containers seen so far
  ResourceAmounts init;      // the most any moment of initialisation needs
  for (const json::Value& container : json::array_at(spec, "initContainers")) {
    ResourceAmounts own = resource_amounts(json::at(container, "resources", which));
    if (json::string_at(container, "restartPolicy") == "Always") {
      add_to(total, own);
      add_to(sidecars, own);
      raise_to(init, sidecars);
    } else {
      add_to(own, sidecars);
      raise_to(init, own);
    }
  }
  raise_to(total, init);
  for (const auto& [name, amount] : resource_amounts(json::at(spec, "resources", which))) {
    if (pod_level(name)) total[name] = amount;
  }
  const ResourceAmounts overhead = resource_amounts(json::at(spec, "overhead"));
  if (which == "requests") {
    add_to(total, overhead);
  } else {
    // Overhead raises only limits that exist.
    for (const auto& [name, amount] : overhead) {
      const auto found = total.find(name);
      if (found != total.end()) found->second = add_clamped(found->second, amount);
    }
  }
  return total;
}

}  // namespace

ResourceAmounts resource_amounts(const json::Value& resource_map) {
  ResourceAmounts amounts;
  for (const auto& member : json::as_object(resource_map)) {
    const std::string name(member.key());
    amounts[name] = amount_of(name, member.value());
  }
  return amounts;
}

ResourceAmounts pod_requests(const json::Value& pod) { return pod_amounts(pod, "requests"); }
ResourceAmounts pod_limits(const json::Value& pod) { return pod_amounts(pod, "limits"); }

std::string qos_class(const json::Value& pod) {
  const json::Value& spec = json::at(pod, "spec");
  const auto compute = [](const json::Value& value) { return resource_amounts(value); };
  const auto positive = [](const ResourceAmounts& amounts, std::string_view name) {
    const auto found = amounts.find(std::string(name));
    return found != amounts.end() && found->second > 0;
  };
  std::vector<const json::Value*> sources;
  const json::Value& pod_resources = json::at(spec, "resources");
  if (!json::object_at(pod_resources, "requests").empty() ||
      !json::object_at(pod_resources, "limits").empty()) {
    sources.push_back(&pod_resources);
  } else {
    for (const json::Value& container : json::array_at(spec, "containers"))
      sources.push_back(&json::at(container, "resources"));
    for (const json::Value& container : json::array_at(spec, "initContainers"))
      sources.push_back(&json::at(container, "resources"));
  }
  bool any = false;
  bool guaranteed = !sources.empty();
  ResourceAmounts requests, limits;
  for (const json::Value* resources : sources) {
    const ResourceAmounts own_requests = compute(json::at(*resources, "requests"));
    const ResourceAmounts own_limits = compute(json::at(*resources, "limits"));
    for (const std::string_view name : {"cpu", "memory"}) {
      any = any || positive(own_requests, name) || positive(own_limits, name);
      guaranteed = guaranteed && positive(own_limits, name);
    }
    add_to(requests, own_requests);
    add_to(limits, own_limits);
  }
  if (!any) return "BestEffort";
  for (const std::string name : {"cpu", "memory"}) {
    // An absent request was defaulted to the limit.
    const auto request = requests.find(name);
    guaranteed = guaranteed && (request == requests.end() || request->second == limits[name]);
  }
  return guaranteed ? "Guaranteed" : "Burstable";
}

bool pod_finished(const json::Value& pod) {
  const std::string_view phase = json::string_at(pod, "status", "phase");
  return phase == "Succeeded" || phase == "Failed";
}

namespace {

using json::Array;
using json::Object;
using json::Value;

void default_pod(Object& object) {
  if (Value* spec = object.if_contains("spec")) default_pod_spec(*spec, true);
}

void prepare_create(Value& pod) {
  if (json::int_at(pod, "spec", "terminationGracePeriodSeconds") < 0)
    json::make(pod, {"spec", "terminationGracePeriodSeconds"}) = 1;
}

Object first_status(const Value& pod, Time now) {
  Object status{{"phase", "Pending"}, {"qosClass", qos_class(pod)}};
  if (!json::array_at(pod, "spec", "schedulingGates").empty()) {
    status["conditions"] =
        Array{Object{{"type", "PodScheduled"},
                     {"status", "False"},
                     {"lastProbeTime", nullptr},
                     {"lastTransitionTime", format_time(now)},
                     {"reason", "SchedulingGated"},
                     {"message", "Scheduling is blocked due to non-empty scheduling gates"}}};
  }
  return status;
}

void validate(const Value& pod, const Value* live, Causes& causes) {
  // A spec that stays as it was has been found good when it came; most updates of pods are of their
  // status.
  if (live != nullptr && json::equal(json::at(pod, "spec"), json::at(*live, "spec"))) return;
  validate_pod_spec(json::at(pod, "spec"), "spec", causes);
  if (live == nullptr)
    validate_new_pod(json::at(pod, "spec"), causes);
  else
    validate_pod_update(pod, *live, causes);
}

Quantity amount(std::string_view resource, std::int64_t value) {
  if (resource == "cpu") return Quantity::from_milli(value);
  const bool bytes =
      resource == "memory" || resource == "ephemeral-storage" || resource.starts_with("hugepages-");
  return Quantity::from_units(value,
                              bytes ? QuantityFormat::kBinarySi : QuantityFormat::kDecimalSi);
}

/// A pod that has ended holds nothing but its object.
void usage(const Value& pod, Usage& used) {
  if (pod_finished(pod)) return;
  used["pods"] = Quantity::from_units(1);
  for (const auto& [name, value] : pod_requests(pod)) {
    used["requests." + name] = amount(name, value);
    if (name == "cpu" || name == "memory" || name == "ephemeral-storage")
      used[name] = amount(name, value);
  }
  for (const auto& [name, value] : pod_limits(pod)) used["limits." + name] = amount(name, value);
}

}  // namespace

std::vector<KindRules> families::pod() {
  using namespace columns;
  return {{.group = "",
           .kind = "Pod",
           .defaults = default_pod,
           .prepare_create = prepare_create,
           .first_status = first_status,
           .validate = validate,
           .usage = usage,
           .columns = {name_column(),
                       text("Ready"),
                       text("Status"),
                       text("Restarts"),
                       text("Age"),
                       text("IP", kWide),
                       text("Node", kWide),
                       text("Nominated Node", kWide),
                       text("Readiness Gates", kWide)},
           .cells = pod_cells,
           .row_conditions = pod_row_conditions,
           .fields = {"metadata.name",
                      "metadata.namespace",
                      "spec.nodeName",
                      "spec.restartPolicy",
                      "spec.schedulerName",
                      "spec.serviceAccountName",
                      "spec.hostNetwork",
                      "status.phase",
                      "status.podIP",
                      "status.podIPs",
                      "status.nominatedNodeName"},
           .generation = true,
           .metadata_with_status = true,
           .answers_object = true}};
}

}  // namespace muster::kube
