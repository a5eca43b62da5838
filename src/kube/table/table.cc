#include "kube/table/table.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/strings.h"
#include "kube/names.h"
#include "kube/selector/selector.h"
#include "kube/table/table_cells.h"

namespace muster::kube {

std::string age_of(Time since, Time now) {
  return since ? human_duration(now - since) : std::string("<unknown>");
}

std::string age_of(const json::Value& timestamp, Time now) {
  const auto time = parse_time(json::as_string(timestamp));
  return age_of(time ? *time : Time{}, now);
}

std::string or_none(std::string text) { return text.empty() ? "<none>" : text; }

std::string labels_text(const json::Value& labels) {
  std::map<std::string, std::string> sorted;
  for (const auto& member : json::as_object(labels))
    sorted[std::string(member.key())] = json::text(member.value());
  std::vector<std::string> parts;
  for (const auto& [key, value] : sorted) parts.push_back(key + "=" + value);
  return parts.empty() ? "<none>" : join(parts, ",");
}

std::string selector_text(const json::Value& selector) {
  const auto parsed = LabelSelector::from_object(selector);
  return parsed ? or_none(parsed->text()) : "<error>";
}

namespace {

using json::Array;
using json::Value;

std::string int_or_string(const Value& value) {
  return value.is_string() ? json::text(value) : json::dump(value);
}
std::int64_t number(const Value& object, std::string_view a, std::string_view b) {
  return json::int_at(object, a, b);
}

std::pair<std::string, std::string> containers_of(const Value& pod_spec) {
  std::vector<std::string> names, images;
  for (const Value& container : json::array_at(pod_spec, "containers")) {
    names.push_back(json::text_at(container, "name"));
    images.push_back(json::text_at(container, "image"));
  }
  return {join(names, ","), join(images, ",")};
}

Array event_cells(const Value& event, Time now) {
  const bool new_api = json::at(event, "regarding").is_object();
  const Value& involved = json::at(event, new_api ? "regarding" : "involvedObject");
  const Value& source = json::at(event, new_api ? "deprecatedSource" : "source");
  const auto own = [&](std::string_view plain, std::string_view deprecated) -> const Value& {
    return json::at(event, new_api ? deprecated : plain);
  };
  const Value& first = own("firstTimestamp", "deprecatedFirstTimestamp");
  const Value& last = own("lastTimestamp", "deprecatedLastTimestamp");
  const Value& event_time = json::at(event, "eventTime");
  const Value& series = json::at(event, "series");
  const auto present = [](const Value& time) { return !json::as_string(time).empty(); };
  const Value& first_seen = present(first) ? first : event_time;
  const Value& last_seen = present(json::at(series, "lastObservedTime"))
                               ? json::at(series, "lastObservedTime")
                           : present(last)  ? last
                           : present(first) ? first
                                            : event_time;
  std::int64_t count = json::as_int(own("count", "deprecatedCount"));
  if (series.is_object())
    count = json::int_at(series, "count");
  else if (count == 0)
    count = 1;
  std::string component = json::text_at(source, "component");
  std::string host = json::text_at(source, "host");
  if (component.empty())
    component = json::text_at(event, new_api ? "reportingController" : "reportingComponent");
  if (host.empty()) host = json::text_at(event, "reportingInstance");
  const std::string object = fmt::format(
      "{}/{}", to_lower(json::string_at(involved, "kind")), json::string_at(involved, "name"));
  const std::string message =
      std::string(trim(json::string_at(event, new_api ? "note" : "message")));
  return {age_of(last_seen, now),
          json::text_at(event, "type"),
          json::text_at(event, "reason"),
          object,
          json::text_at(involved, "fieldPath"),
          host.empty() ? component : component + ", " + host,
          message,
          age_of(first_seen, now),
          count,
          name_of(event)};
}

std::string external_ip(const Value& service, std::string_view type) {
  std::vector<std::string> addresses;
  for (const Value& one : json::array_at(service, "status", "loadBalancer", "ingress")) {
    const std::string ip = json::text_at(one, "ip");
    addresses.push_back(ip.empty() ? json::text_at(one, "hostname") : ip);
  }
  std::vector<std::string> given;
  for (const Value& ip : json::array_at(service, "spec", "externalIPs"))
    given.push_back(json::text(ip));
  if (type == "ExternalName") return or_none(json::text_at(service, "spec", "externalName"));
  if (type == "LoadBalancer") {
    addresses.insert(addresses.end(), given.begin(), given.end());
    return addresses.empty() ? "<pending>" : join(addresses, ",");
  }
  return given.empty() ? "<none>" : join(given, ",");
}

Array service_cells(const Value& service, Time now) {
  const Value& spec = json::at(service, "spec");
  const std::string type = json::text_at(spec, "type");
  std::vector<std::string> ports;
  for (const Value& port : json::array_at(spec, "ports")) {
    std::string text = std::to_string(json::int_at(port, "port"));
    if (json::int_at(port, "nodePort") > 0)
      text += fmt::format(":{}", json::int_at(port, "nodePort"));
    ports.push_back(text + "/" + json::text_at(port, "protocol"));
  }
  const Array& ips = json::array_at(spec, "clusterIPs");
  std::string ip = ips.empty() ? json::text_at(spec, "clusterIP") : json::text(ips[0]);
  return {name_of(service),
          type,
          or_none(std::move(ip)),
          external_ip(service, type),
          ports.empty() ? "<none>" : join(ports, ","),
          age_of(creation_time(service), now),
          labels_text(json::at(spec, "selector"))};
}

Array quota_cells(const Value& quota, Time now) {
  std::map<std::string, std::string> hard;
  for (const auto& member : json::object_at(quota, "status", "hard"))
    hard[std::string(member.key())] = int_or_string(member.value());
  std::vector<std::string> requests, limits;
  for (const auto& [name, amount] : hard) {
    const Value& used = json::at(quota, "status", "used", name);
    const std::string text = fmt::format(
        "{}: {}/{}", name, used.is_null() ? std::string("0") : int_or_string(used), amount);
    (name.starts_with("limits") ? limits : requests).push_back(text);
  }
  return {
      name_of(quota), join(requests, ", "), join(limits, ", "), age_of(creation_time(quota), now)};
}

Array deployment_cells(const Value& object, Time now) {
  const auto [names, images] = containers_of(json::at(object, "spec", "template", "spec"));
  return {
      name_of(object),
      fmt::format(
          "{}/{}", number(object, "status", "readyReplicas"), number(object, "spec", "replicas")),
      number(object, "status", "updatedReplicas"),
      number(object, "status", "availableReplicas"),
      age_of(creation_time(object), now),
      names,
      images,
      selector_text(json::at(object, "spec", "selector"))};
}

Array replica_set_cells(const Value& object, Time now) {
  const auto [names, images] = containers_of(json::at(object, "spec", "template", "spec"));
  const Value& selector = json::at(object, "spec", "selector");
  const bool plain = json::string_at(object, "kind") == "ReplicationController";
  return {name_of(object),
          number(object, "spec", "replicas"),
          number(object, "status", "replicas"),
          number(object, "status", "readyReplicas"),
          age_of(creation_time(object), now),
          names,
          images,
          plain ? labels_text(selector) : selector_text(selector)};
}

Array stateful_set_cells(const Value& object, Time now) {
  const auto [names, images] = containers_of(json::at(object, "spec", "template", "spec"));
  return {
      name_of(object),
      fmt::format(
          "{}/{}", number(object, "status", "readyReplicas"), number(object, "spec", "replicas")),
      age_of(creation_time(object), now),
      names,
      images};
}

Array daemon_set_cells(const Value& object, Time now) {
  const auto [names, images] = containers_of(json::at(object, "spec", "template", "spec"));
  return {name_of(object),
          number(object, "status", "desiredNumberScheduled"),
          number(object, "status", "currentNumberScheduled"),
          number(object, "status", "numberReady"),
          number(object, "status", "updatedNumberScheduled"),
          number(object, "status", "numberAvailable"),
          labels_text(json::at(object, "spec", "template", "spec", "nodeSelector")),
          age_of(creation_time(object), now),
          names,
          images,
          selector_text(json::at(object, "spec", "selector"))};
}

Array job_cells(const Value& job, Time now) {
  const Value& spec = json::at(job, "spec");
  const Value& status = json::at(job, "status");
  std::string completions;
  const std::int64_t succeeded = json::int_at(status, "succeeded");
  const Value& wanted = json::at(spec, "completions");
  const std::int64_t parallelism = json::int_at(spec, "parallelism");
  if (!wanted.is_null())
    completions = fmt::format("{}/{}", succeeded, json::as_int(wanted));
  else if (parallelism > 1)
    completions = fmt::format("{}/1 of {}", succeeded, parallelism);
  else
    completions = fmt::format("{}/1", succeeded);
  std::string state = "Running";
  if (condition_true(job, "Complete"))
    state = "Complete";
  else if (condition_true(job, "Failed"))
    state = "Failed";
  else if (is_deleting(job))
    state = "Terminating";
  else if (condition_true(job, "Suspended"))
    state = "Suspended";
  else if (condition_true(job, "FailureTarget"))
    state = "FailureTarget";
  else if (condition_true(job, "SuccessCriteriaMet"))
    state = "SuccessCriteriaMet";
  std::string duration;
  const auto started = parse_time(json::string_at(status, "startTime"));
  if (started) {
    const auto done = parse_time(json::string_at(status, "completionTime"));
    duration = human_duration((done ? *done : now) - *started);
  }
  const auto [names, images] = containers_of(json::at(spec, "template", "spec"));
  return {name_of(job),
          state,
          completions,
          duration,
          age_of(creation_time(job), now),
          names,
          images,
          selector_text(json::at(spec, "selector"))};
}

Array cron_job_cells(const Value& object, Time now) {
  const Value& spec = json::at(object, "spec");
  const auto [names, images] =
      containers_of(json::at(spec, "jobTemplate", "spec", "template", "spec"));
  const Value& last = json::at(object, "status", "lastScheduleTime");
  const Value& selector = json::at(spec, "jobTemplate", "spec", "selector");
  return {name_of(object),
          json::text_at(spec, "schedule"),
          or_none(json::text_at(spec, "timeZone")),
          json::bool_at(spec, "suspend") ? "True" : "False",
          static_cast<std::int64_t>(json::array_at(object, "status", "active").size()),
          last.is_null() ? "<none>" : age_of(last, now),
          age_of(creation_time(object), now),
          names,
          images,
          selector.is_null() ? "<none>" : selector_text(selector)};
}

Array pdb_cells(const Value& object, Time now) {
  const auto bound = [&](std::string_view key) {
    const Value& value = json::at(object, "spec", key);
    return value.is_null() ? std::string("N/A") : int_or_string(value);
  };
  return {name_of(object),
          bound("minAvailable"),
          bound("maxUnavailable"),
          number(object, "status", "disruptionsAllowed"),
          age_of(creation_time(object), now)};
}

Array crd_cells(const Value& object, Time) {
  const Value& spec = json::at(object, "spec");
  std::vector<std::string> versions, shorts;
  for (const Value& version : json::array_at(spec, "versions")) {
    versions.push_back(json::text_at(version, "name") +
                       (json::bool_at(version, "storage") ? "(storage)" : ""));
  }
  for (const Value& name : json::array_at(spec, "names", "shortNames"))
    shorts.push_back(json::text(name));
  return {name_of(object),
          json::text_at(spec, "scope"),
          join(versions, ","),
          json::text_at(object, "metadata", "creationTimestamp"),
          json::text_at(spec, "group"),
          json::text_at(spec, "names", "kind"),
          join(shorts, ","),
          condition_true(object, "Established")};
}

std::string access_modes(const Value& modes) {
  std::vector<std::string> out;
  for (const Value& mode : json::as_array(modes)) {
    const std::string_view text = json::as_string(mode);
    if (text == "ReadWriteOnce")
      out.emplace_back("RWO");
    else if (text == "ReadOnlyMany")
      out.emplace_back("ROX");
    else if (text == "ReadWriteMany")
      out.emplace_back("RWX");
    else if (text == "ReadWriteOncePod")
      out.emplace_back("RWOP");
  }
  return join(out, ",");
}

Array claim_cells(const Value& object, Time now) {
  const Value& spec = json::at(object, "spec");
  const Value& status = json::at(object, "status");
  std::string phase = json::text_at(status, "phase");
  if (is_deleting(object)) phase = "Terminating";
  const std::string volume = json::text_at(spec, "volumeName");
  std::string capacity, modes;
  if (!volume.empty()) {
    capacity = int_or_string(json::at(status, "capacity", "storage").is_null()
                                 ? Value("0")
                                 : json::at(status, "capacity", "storage"));
    modes = access_modes(json::at(status, "accessModes"));
  }
  const std::string mode = json::text_at(spec, "volumeMode");
  const std::string attributes = json::text_at(spec, "volumeAttributesClassName");
  return {name_of(object),
          phase,
          volume,
          capacity,
          modes,
          json::text_at(spec, "storageClassName"),
          attributes.empty() ? "<unset>" : attributes,
          age_of(creation_time(object), now),
          mode.empty() ? "<unset>" : mode};
}

Array volume_cells(const Value& object, Time now) {
  const Value& spec = json::at(object, "spec");
  std::string phase = json::text_at(object, "status", "phase");
  if (is_deleting(object)) phase = "Terminating";
  std::string claim;
  if (json::at(spec, "claimRef").is_object())
    claim = fmt::format("{}/{}",
                        json::string_at(spec, "claimRef", "namespace"),
                        json::string_at(spec, "claimRef", "name"));
  const std::string mode = json::text_at(spec, "volumeMode");
  const std::string attributes = json::text_at(spec, "volumeAttributesClassName");
  return {name_of(object),
          int_or_string(json::at(spec, "capacity", "storage").is_null()
                            ? Value("0")
                            : json::at(spec, "capacity", "storage")),
          access_modes(json::at(spec, "accessModes")),
          json::text_at(spec, "persistentVolumeReclaimPolicy"),
          phase,
          claim,
          json::text_at(spec, "storageClassName"),
          attributes.empty() ? "<unset>" : attributes,
          json::text_at(object, "status", "reason"),
          age_of(creation_time(object), now),
          mode.empty() ? "<unset>" : mode};
}

Array role_binding_cells(const Value& object, Time now) {
  std::vector<std::string> users, groups, accounts;
  for (const Value& subject : json::array_at(object, "subjects")) {
    const std::string_view kind = json::string_at(subject, "kind");
    const std::string name = json::text_at(subject, "name");
    if (kind == "User")
      users.push_back(name);
    else if (kind == "Group")
      groups.push_back(name);
    else if (kind == "ServiceAccount")
      accounts.push_back(json::text_at(subject, "namespace") + "/" + name);
  }
  return {name_of(object),
          fmt::format("{}/{}",
                      json::string_at(object, "roleRef", "kind"),
                      json::string_at(object, "roleRef", "name")),
          age_of(creation_time(object), now),
          join(users, ", "),
          join(groups, ", "),
          join(accounts, ", ")};
}

Array endpoints_cells(const Value& object, Time now) {
  std::vector<std::string> found;
  for (const Value& subset : json::array_at(object, "subsets")) {
    for (const Value& port : json::array_at(subset, "ports")) {
      for (const Value& one : json::array_at(subset, "addresses")) {
        found.push_back(
            fmt::format("{}:{}", json::string_at(one, "ip"), json::int_at(port, "port")));
      }
    }
  }
  std::string text = "<none>";
  if (!found.empty()) {
    const std::size_t shown = std::min<std::size_t>(found.size(), 3);
    text = join(
        std::vector<std::string>(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(shown)),
        ",");
    if (found.size() > shown) text += fmt::format(" + {} more...", found.size() - shown);
  }
  return {name_of(object), text, age_of(creation_time(object), now)};
}

std::string few(const std::vector<std::string>& all) {
  if (all.empty()) return "<unset>";
  const std::size_t shown = std::min<std::size_t>(all.size(), 3);
  std::string text = join(
      std::vector<std::string>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(shown)), ",");
  if (all.size() > shown) text += fmt::format(" + {} more...", all.size() - shown);
  return text;
}

Array endpoint_slice_cells(const Value& object, Time now) {
  std::vector<std::string> ports, addresses;
  for (const Value& port : json::array_at(object, "ports"))
    ports.push_back(json::at(port, "port").is_null() ? "*" : json::dump(json::at(port, "port")));
  for (const Value& endpoint : json::array_at(object, "endpoints")) {
    for (const Value& address : json::array_at(endpoint, "addresses"))
      addresses.push_back(json::text(address));
  }
  return {name_of(object),
          json::text_at(object, "addressType"),
          few(ports),
          few(addresses),
          age_of(creation_time(object), now)};
}

std::string policy_name(const Value& object) {
  return json::at(object, "spec", "schedulingPolicy", "gang").is_object() ? "Gang" : "Basic";
}

Array pod_group_cells(const Value& object, Time now) {
  std::string status = "Pending";
  const Value& scheduled = condition(object, "PodGroupInitiallyScheduled");
  if (scheduled.is_object())
    status = json::string_at(scheduled, "status") == "True" ? "Scheduled" : "Unschedulable";
  const Value& disrupted = condition(object, "DisruptionTarget");
  if (disrupted.is_object()) status = json::text_at(disrupted, "reason");
  return {name_of(object),
          policy_name(object),
          or_none(json::text_at(object, "spec", "workloadRef", "workloadName")),
          status,
          age_of(creation_time(object), now)};
}

Array storage_class_cells(const Value& object, Time now) {
  std::string name(name_of(object));
  if (annotation(object, names::kubernetes::kDefaultClass) == "true") name += " (default)";
  return {name,
          json::text_at(object, "provisioner"),
          json::text_at(object, "reclaimPolicy"),
          json::text_at(object, "volumeBindingMode"),
          json::bool_at(object, "allowVolumeExpansion"),
          age_of(creation_time(object), now)};
}

Array hpa_cells(const Value& object, Time now) {
  const Value& spec = json::at(object, "spec");
  const Value& least = json::at(spec, "minReplicas");
  return {name_of(object),
          fmt::format("{}/{}",
                      json::string_at(spec, "scaleTargetRef", "kind"),
                      json::string_at(spec, "scaleTargetRef", "name")),
          "<unknown>",
          least.is_null() ? "<unset>" : json::dump(least),
          json::int_at(spec, "maxReplicas"),
          number(object, "status", "currentReplicas"),
          age_of(creation_time(object), now)};
}

using Printer = Array (*)(const Value&, Time);

Printer printer_of(const std::string& group, const std::string& kind) {
  static const std::unordered_map<std::string, Printer> kPrinters = {
      {"/Pod", pod_cells},
      {"/Node", node_cells},
      {"/Event", event_cells},
      {"events.k8s.io/Event", event_cells},
      {"/Namespace",
       [](const Value& o, Time now) {
         return Array{
             name_of(o), json::text_at(o, "status", "phase"), age_of(creation_time(o), now)};
       }},
      {"/ConfigMap",
       [](const Value& o, Time now) {
         const auto entries =
             json::object_at(o, "data").size() + json::object_at(o, "binaryData").size();
         return Array{
             name_of(o), static_cast<std::int64_t>(entries), age_of(creation_time(o), now)};
       }},
      {"/Secret",
       [](const Value& o, Time now) {
         return Array{name_of(o),
                      json::text_at(o, "type"),
                      static_cast<std::int64_t>(json::object_at(o, "data").size()),
                      age_of(creation_time(o), now)};
       }},
      {"/ServiceAccount",
       [](const Value& o, Time now) { return Array{name_of(o), age_of(creation_time(o), now)}; }},
      {"/Service", service_cells},
      {"/ResourceQuota", quota_cells},
      {"/LimitRange",
       [](const Value& o, Time) {
         return Array{name_of(o), json::text_at(o, "metadata", "creationTimestamp")};
       }},
      {"/Endpoints", endpoints_cells},
      {"/PersistentVolumeClaim", claim_cells},
      {"/PersistentVolume", volume_cells},
      {"/ReplicationController", replica_set_cells},
      {"/PodTemplate",
       [](const Value& o, Time) {
         const auto [names, images] = containers_of(json::at(o, "template", "spec"));
         return Array{
             name_of(o), names, images, labels_text(json::at(o, "template", "metadata", "labels"))};
       }},
      {"apps/Deployment", deployment_cells},
      {"apps/ReplicaSet", replica_set_cells},
      {"apps/StatefulSet", stateful_set_cells},
      {"apps/DaemonSet", daemon_set_cells},
      {"apps/ControllerRevision",
       [](const Value& o, Time now) {
         const OwnerReference owner = controller_of(o);
         const Gvk gvk =
             gvk_of(json::Object{{"apiVersion", owner.api_version}, {"kind", owner.kind}});
         const std::string kind = to_lower(owner.kind) + (gvk.group.empty() ? "" : "." + gvk.group);
         return Array{name_of(o),
                      owner.kind.empty() ? "<none>" : kind + "/" + owner.name,
                      json::int_at(o, "revision"),
                      age_of(creation_time(o), now)};
       }},
      {"batch/Job", job_cells},
      {"batch/CronJob", cron_job_cells},
      {"policy/PodDisruptionBudget", pdb_cells},
      {"coordination.k8s.io/Lease",
       [](const Value& o, Time now) {
         return Array{
             name_of(o), json::text_at(o, "spec", "holderIdentity"), age_of(creation_time(o), now)};
       }},
      {"scheduling.k8s.io/PriorityClass",
       [](const Value& o, Time now) {
         return Array{name_of(o),
                      json::int_at(o, "value"),
                      json::bool_at(o, "globalDefault"),
                      age_of(creation_time(o), now),
                      json::text_at(o, "preemptionPolicy")};
       }},
      {"scheduling.k8s.io/PodGroup", pod_group_cells},
      {"scheduling.k8s.io/CompositePodGroup",
       [](const Value& o, Time now) {
         return Array{name_of(o),
                      policy_name(o),
                      or_none(json::text_at(o, "spec", "workloadRef", "workloadName")),
                      age_of(creation_time(o), now)};
       }},
      {"apiextensions.k8s.io/CustomResourceDefinition", crd_cells},
      {"rbac.authorization.k8s.io/RoleBinding", role_binding_cells},
      {"rbac.authorization.k8s.io/ClusterRoleBinding", role_binding_cells},
      {"rbac.authorization.k8s.io/Role",
       [](const Value& o, Time) {
         return Array{name_of(o), json::text_at(o, "metadata", "creationTimestamp")};
       }},
      {"rbac.authorization.k8s.io/ClusterRole",
       [](const Value& o, Time) {
         return Array{name_of(o), json::text_at(o, "metadata", "creationTimestamp")};
       }},
      {"storage.k8s.io/StorageClass", storage_class_cells},
      {"storage.k8s.io/CSINode",
       [](const Value& o, Time now) {
         return Array{name_of(o),
                      static_cast<std::int64_t>(json::array_at(o, "spec", "drivers").size()),
                      age_of(creation_time(o), now)};
       }},
      {"discovery.k8s.io/EndpointSlice", endpoint_slice_cells},
      {"networking.k8s.io/NetworkPolicy",
       [](const Value& o, Time now) {
         return Array{name_of(o),
                      selector_text(json::at(o, "spec", "podSelector")),
                      age_of(creation_time(o), now)};
       }},
      {"networking.k8s.io/IngressClass",
       [](const Value& o, Time now) {
         return Array{name_of(o),
                      json::text_at(o, "spec", "controller"),
                      "<none>",
                      age_of(creation_time(o), now)};
       }},
      {"node.k8s.io/RuntimeClass",
       [](const Value& o, Time now) {
         return Array{name_of(o), json::text_at(o, "handler"), age_of(creation_time(o), now)};
       }},
      {"autoscaling/HorizontalPodAutoscaler", hpa_cells},
  };
  const auto found = kPrinters.find(group + "/" + kind);
  return found == kPrinters.end() ? nullptr : found->second;
}

/// One cell of a custom resource, in the type the column declares.
Value column_cell(const Column& column, const Value& object, Time now) {
  const auto found = json_path(object, column.json_path);
  if (found.empty() || found[0].is_null()) return nullptr;
  if (found.size() > 1) {
    std::vector<std::string> texts;
    for (const Value& value : found) texts.push_back(int_or_string(value));
    return Value(join(texts, ","));
  }
  const Value& value = found[0];
  if (column.type == "date") {
    const auto time = parse_time(json::as_string(value));
    return time ? Value(age_of(*time, now)) : Value("<invalid>");
  }
  if (column.type == "integer") {
    if (value.is_int64()) return value;
    const auto number = parse_int(json::as_string(value));
    return number ? Value(*number) : Value(nullptr);
  }
  if (column.type == "boolean") return value.is_bool() ? value : Value(nullptr);
  if (column.type == "number") return value.is_number() ? value : Value(nullptr);
  return Value(int_or_string(value));
}

Array plain_cells(const ResourceInfo& resource, const Value& object, Time now) {
  Array cells;
  for (const Column& column : resource.columns) {
    if (!column.json_path.empty())
      cells.push_back(column_cell(column, object, now));
    else if (column.format == "name" || column.name == "Name")
      cells.emplace_back(name_of(object));
    else if (column.name == "Age")
      cells.emplace_back(age_of(creation_time(object), now));
    else if (column.name == "Created At")
      cells.push_back(json::at(object, "metadata", "creationTimestamp"));
    else
      cells.emplace_back("");
  }
  return cells;
}

}  // namespace

json::Value table_row(const ResourceInfo& resource, const json::Value& object, Time now) {
  json::Object row;
  const bool custom = std::any_of(resource.columns.begin(),
                                  resource.columns.end(),
                                  [](const Column& column) { return !column.json_path.empty(); });
  const Printer printer = custom ? nullptr : printer_of(resource.group, resource.kind);
  Array cells = printer != nullptr ? printer(object, now) : plain_cells(resource, object, now);
  row["cells"] = std::move(cells);
  if (resource.group.empty() && resource.kind == "Pod") {
    Value conditions = pod_row_conditions(object);
    if (!conditions.is_null()) row["conditions"] = std::move(conditions);
  }
  return row;
}

json::Value column_definitions(const ResourceInfo& resource) {
  Array out;
  for (const Column& column : resource.columns) {
    out.push_back(json::Object{{"name", column.name},
                               {"type", column.type},
                               {"format", column.format},
                               {"description", column.description},
                               {"priority", column.priority}});
  }
  return out;
}

}  // namespace muster::kube
