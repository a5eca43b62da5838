#include "hived/extender.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "hived/annotations.h"
#include "hived/inspect.h"

namespace muster::hived {
namespace {

using namespace engine::cells;
using json::Array;
using json::Object;
using json::Value;

const char* const kPaths[] = {"/",
                              "/v1/extender/filter",
                              "/v1/extender/bind",
                              "/v1/extender/preempt",
                              "/v1/inspect/affinitygroups/",
                              "/v1/inspect/clusterstatus",
                              "/v1/inspect/clusterstatus/physicalcluster",
                              "/v1/inspect/clusterstatus/virtualclusters/"};

/// Go's decoder takes keys in any case.
const Value& any_case(const Value& object, std::string_view key) {
  const Value& exact = json::at(object, key);
  if (!exact.is_null() || !object.is_object()) return exact;
  for (const auto& member : object.get_object()) {
    if (to_lower(member.key()) == to_lower(key)) return member.value();
  }
  return json::null_value();
}

std::string label_of(const std::string& uid, const std::string& ns, const std::string& name) {
  return fmt::format("{}({}/{})", uid, ns, name);
}
std::string label_of(const Value& pod) {
  return label_of(json::text_at(pod, "metadata", "uid"),
                  json::text_at(pod, "metadata", "namespace"),
                  json::text_at(pod, "metadata", "name"));
}

bool is_completed(const Value& pod) {
  const auto phase = json::string_at(pod, "status", "phase");
  return phase == "Succeeded" || phase == "Failed";
}

bool is_enabled(const Value& pod) {
  for (const char* list : {"initContainers", "containers"}) {
    for (const Value& container : json::array_at(pod, "spec", list)) {
      const Value& limit = json::at(container, "resources", "limits", kSchedulingEnable);
      const std::string text = limit.is_string() ? json::text(limit)
                               : limit.is_null() ? "0"
                                                 : json::dump(limit);
      if (!text.empty() && text[0] != '-' && text.find_first_of("123456789") != std::string::npos)
        return true;
    }
  }
  return false;
}

HttpAnswer json_answer(int status, const Value& value) {
  HttpAnswer out;
  out.status = status;
  out.body = json::dump(value);
  return out;
}

std::string error_text(int code,
                       std::string_view label,
                       std::string_view routine,
                       std::string_view message) {
  return fmt::format("hivedscheduler: {} Error: [{}]: {}: Failed: {}",
                     code >= 500 ? "Platform" : "User",
                     label,
                     routine,
                     message);
}

std::string user_error(std::string_view message) {
  return fmt::format("hivedscheduler: User Error: {}", message);
}

std::string extender_error(int code, std::string_view message) {
  return fmt::format("Code: {}, Message: {}", code, message);
}

std::vector<std::string> texts(const Value& array) {
  std::vector<std::string> out;
  for (const Value& one : json::as_array(array)) out.push_back(json::text(one));
  return out;
}

}  // namespace

Result<Extender> Extender::create(const Config& config) {
  auto allocator = CellAllocator::create(config.cells, {});
  if (!allocator) return fail(allocator.error());
  return Extender(std::move(*allocator), config);
}

void Extender::node_added(const std::string& name, bool healthy) {
  nodes_[name] = healthy;
  allocator_.set_node(name, healthy);
}

void Extender::node_deleted(const std::string& name) {
  nodes_.erase(name);
  allocator_.set_node(name, false);
}

void Extender::pod_added(const Value& pod, Time now) { pod_updated(pod, now); }

void Extender::pod_updated(const Value& pod, Time now) {
  const std::string uid = json::text_at(pod, "metadata", "uid");
  if (is_completed(pod) || !is_enabled(pod)) {
    remove_pod(uid);
    return;
  }
  // The same name with another UID: the old pod is gone.
  const std::string ns = json::text_at(pod, "metadata", "namespace");
  const std::string name = json::text_at(pod, "metadata", "name");
  if (const auto known = uids_.find(ns + "/" + name); known != uids_.end() && known->second != uid)
    remove_pod(std::string(known->second));
  add_pod(pod, now);
}

void Extender::pod_deleted(const Value& pod) { remove_pod(json::text_at(pod, "metadata", "uid")); }

void Extender::add_pod(const Value& object, Time now) {
  const std::string uid = json::text_at(object, "metadata", "uid");
  Pod& pod = pods_[uid];
  pod.ns = json::text_at(object, "metadata", "namespace");
  pod.name = json::text_at(object, "metadata", "name");
  pod.ref = {uid, pod.ns + "/" + pod.name};
  uids_[pod.ref.name] = uid;
  if (json::string_at(object, "spec", "nodeName").empty()) return;
  if (pod.state == PodState::kBinding) {
    pod.state = PodState::kBound;
  } else if (pod.state != PodState::kBound) {
    add_bound(pod, object, now);
  }
}

void Extender::add_bound(Pod& pod, const Value& object, Time now) {
  if (!pod.group.empty()) allocator_.delete_unallocated(pod.ref, pod.group);
  pod.state = PodState::kBound;
  const Value& annotations = json::at(object, "metadata", "annotations");
  auto spec =
      parse_scheduling_spec(json::string_at(annotations, kSchedulingSpec), pod.ns, pod.name);
  auto bind = parse_bind_info(json::string_at(annotations, kBindInfo));
  if (!spec || !bind) {
    warnings_.push_back(fmt::format("[{}]: bound by somebody else, not counted: {}",
                                    label_of(object),
                                    !spec ? spec.error().message : bind.error().message));
    return;
  }
  pod.spec = std::move(*spec);
  pod.bind = std::move(*bind);
  const auto added = allocator_.add_allocated(pod.ref, pod.spec, pod.bind, now);
  pod.allocated = added.has_value();
  if (!added) warnings_.push_back(added.error().message);
}

void Extender::remove_pod(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  Pod& pod = found->second;
  if (pod.allocated) {
    if (const auto done = allocator_.delete_allocated(pod.ref, pod.spec, pod.bind); !done)
      warnings_.push_back(done.error().message);
  } else if (!pod.group.empty()) {
    allocator_.delete_unallocated(pod.ref, pod.group);
  }
  uids_.erase(pod.ref.name);
  pods_.erase(found);
}

Extender::Outcome<Extender::Pod*> Extender::find_pod(const std::string& uid,
                                                     const std::string& label,
                                                     const char* routine) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) {
    return tl::unexpected(Failure{
        400,
        error_text(400,
                   label,
                   routine,
                   "Pod does not exist, completed or has not been informed to the scheduler")});
  }
  if (found->second.state == PodState::kBound) {
    return tl::unexpected(Failure{
        400,
        error_text(400,
                   label,
                   routine,
                   fmt::format("Pod has already been bound to node {}", found->second.bind.node))});
  }
  return &found->second;
}

Extender::Outcome<Decision> Extender::schedule(Pod& pod,
                                               const Value& object,
                                               Phase phase,
                                               const std::vector<std::string>& suggested,
                                               const char* routine,
                                               Time now) {
  const std::string label = label_of(object);
  const Value& annotations = json::at(object, "metadata", "annotations");
  const auto spec =
      parse_scheduling_spec(json::string_at(annotations, kSchedulingSpec), pod.ns, pod.name);
  if (!spec)
    return tl::unexpected(Failure{400, error_text(400, label, routine, spec.error().message)});
  pod.spec = *spec;
  pod.group = spec->group;
  Decision decision = allocator_.schedule({pod.ref, pod.spec, phase, &suggested, now});
  if (decision.kind == Decision::Kind::kError)
    return tl::unexpected(Failure{400, error_text(400, label, routine, decision.reason)});
  return decision;
}

void Extender::assume(Pod& pod, const Value& object, const BindInfo& bind, Time now) {
  pod.bind = bind;
  pod.state = PodState::kBinding;
  pod.attempts = 0;
  const auto added = allocator_.add_allocated(pod.ref, pod.spec, bind, now);
  pod.allocated = added.has_value();
  if (!added) warnings_.push_back(added.error().message);
  const Value& annotations = json::at(object, "metadata", "annotations");
  const Value& old = json::at(annotations, kGpuIsolation);
  const bool only_old = !old.is_null() && json::at(annotations, kLeafCellIsolation).is_null();
  pod.bind_annotations =
      Object{{kBindInfo, format_bind_info(bind)},
             {kLeafCellIsolation, only_old ? json::text(old) : format_isolation(bind)}};
}

bool Extender::should_force(const Pod& pod, const std::vector<std::string>& suggested) const {
  if (pod.attempts >= config_.force_pod_bind_threshold) return true;
  if (!nodes_.contains(pod.bind.node)) return true;
  return std::find(suggested.begin(), suggested.end(), pod.bind.node) == suggested.end();
}

Value Extender::binding_of(const Pod& pod) {
  return Object{{"apiVersion", "v1"},
                {"kind", "Binding"},
                {"metadata",
                 Object{{"namespace", pod.ns},
                        {"name", pod.name},
                        {"uid", pod.ref.uid},
                        {"annotations", pod.bind_annotations}}},
                {"target", Object{{"kind", "Node"}, {"name", pod.bind.node}}}};
}

Extender::Outcome<Value> Extender::filter_pod(const Value& request, Time now, HttpAnswer& out) {
  const Value& object = any_case(request, "Pod");
  if (!object.is_object())
    return tl::unexpected(Failure{400, "ExtenderArgs: Pod field should not be nil"});
  const std::vector<std::string> suggested = texts(any_case(request, "NodeNames"));
  const auto found =
      find_pod(json::text_at(object, "metadata", "uid"), label_of(object), "filterRoutine");
  if (!found) return tl::unexpected(found.error());
  Pod& pod = **found;
  Object answer{
      {"Nodes", nullptr}, {"NodeNames", nullptr}, {"FailedNodes", nullptr}, {"Error", ""}};
  if (pod.state == PodState::kBinding) {
    ++pod.attempts;
  } else {
    const auto decision = schedule(pod, object, Phase::kFiltering, suggested, "filterRoutine", now);
    if (!decision) return tl::unexpected(decision.error());
    if (decision->kind == Decision::Kind::kPreempt) {
      const Victims& victims = decision->victims.front();
      std::vector<std::string> names;
      for (const PodRef& victim : victims.pods)
        names.push_back(fmt::format("{}({})", victim.uid, victim.name));
      answer["FailedNodes"] = Object{
          {victims.node,
           fmt::format("node({}) has preemptible Pods: {}", victims.node, join(names, ", "))}};
      return answer;
    }
    if (decision->kind == Decision::Kind::kWait) {
      pod.state = PodState::kWaiting;
      std::string text = "Pod is waiting for preemptible or free resource to appear";
      if (!decision->reason.empty()) text += ": " + decision->reason;
      answer["FailedNodes"] = Object{{"hivedscheduler", std::move(text)}};
      out.hold = std::chrono::milliseconds(config_.waiting_pod_block_ms);
      return answer;
    }
    assume(pod, object, decision->bind, now);
  }
  if (should_force(pod, suggested)) out.binding = binding_of(pod);
  answer["NodeNames"] = Array{Value(pod.bind.node)};
  return answer;
}

HttpAnswer Extender::filter(std::string_view body, Time now) {
  const auto request = json::parse(body);
  HttpAnswer answer;
  Outcome<Value> done =
      request ? filter_pod(*request, now, answer)
              : Outcome<Value>(tl::unexpected(Failure{
                    400,
                    fmt::format("Failed to unmarshal web request object to ExtenderArgs: {}",
                                request.error().message)}));
  answer.body =
      json::dump(done ? *done
                      : Object{{"Nodes", nullptr},
                               {"NodeNames", nullptr},
                               {"FailedNodes", nullptr},
                               {"Error", extender_error(done.error().code, done.error().message)}});
  return answer;
}

Extender::Outcome<Value> Extender::bind_pod(const Value& request) {
  const std::string name = json::text(any_case(request, "PodName"));
  const std::string ns = json::text(any_case(request, "PodNamespace"));
  const std::string uid = json::text(any_case(request, "PodUID"));
  const std::string node = json::text(any_case(request, "Node"));
  for (const auto& [field, value] :
       {std::pair{"PodName", name}, {"PodNamespace", ns}, {"PodUID", uid}, {"Node", node}}) {
    if (value.empty())
      return tl::unexpected(
          Failure{400, fmt::format("ExtenderBindingArgs: {} field should not be empty", field)});
  }
  const std::string label = label_of(uid, ns, name);
  const auto found = find_pod(uid, label, "bindRoutine");
  if (!found) return tl::unexpected(found.error());
  const Pod& pod = **found;
  if (pod.state != PodState::kBinding) {
    return tl::unexpected(Failure{
        400,
        error_text(
            400, label, "bindRoutine", "Pod cannot be bound without a scheduling placement")});
  }
  if (pod.bind.node != node) {
    return tl::unexpected(Failure{
        400,
        error_text(
            400,
            label,
            "bindRoutine",
            fmt::format(
                "Pod binding node mismatch: expected {}, received {}", pod.bind.node, node))});
  }
  return binding_of(pod);
}

HttpAnswer Extender::bind(std::string_view body) {
  const auto request = json::parse(body);
  Outcome<Value> done =
      request ? bind_pod(*request)
              : Outcome<Value>(tl::unexpected(Failure{
                    400,
                    fmt::format("Failed to unmarshal web request object to ExtenderBindingArgs: {}",
                                request.error().message)}));
  if (!done)
    return json_answer(200,
                       Object{{"Error", extender_error(done.error().code, done.error().message)}});
  HttpAnswer answer = json_answer(200, Object{{"Error", ""}});
  answer.binding = std::move(*done);
  answer.waits_for_binding = true;
  return answer;
}

HttpAnswer Extender::bound(const Value& binding, int status) {
  if (status < 300) return json_answer(200, Object{{"Error", ""}});
  const std::string text =
      error_text(500,
                 label_of(binding),
                 "bindRoutine",
                 fmt::format("Failed to bind Pod: the API server answered {}", status));
  return json_answer(200, Object{{"Error", extender_error(500, text)}});
}

Extender::Outcome<Value> Extender::preempt_pod(const Value& request, Time now) {
  const Value& object = any_case(request, "Pod");
  if (!object.is_object())
    return tl::unexpected(Failure{400, "ExtenderPreemptionArgs: Pod field should not be nil"});
  std::vector<std::string> suggested;
  for (const auto& member : json::as_object(any_case(request, "NodeNameToMetaVictims")))
    suggested.emplace_back(member.key());
  const std::string label = label_of(object);
  const auto found = find_pod(json::text_at(object, "metadata", "uid"), label, "preemptRoutine");
  if (!found) return tl::unexpected(found.error());
  Pod& pod = **found;
  if (pod.state == PodState::kBinding) {
    return tl::unexpected(
        Failure{400,
                error_text(400,
                           label,
                           "preemptRoutine",
                           fmt::format("Pod has already been binding to node {}", pod.bind.node))});
  }
  const auto decision = schedule(pod, object, Phase::kPreempting, suggested, "preemptRoutine", now);
  if (!decision) return tl::unexpected(decision.error());
  Object answer{{"NodeNameToMetaVictims", nullptr}};
  if (decision->kind == Decision::Kind::kWait) pod.state = PodState::kWaiting;
  if (decision->kind == Decision::Kind::kPreempt) {
    pod.state = PodState::kPreempting;
    const Victims& victims = decision->victims.front();
    Array pods;
    for (const PodRef& victim : victims.pods) pods.push_back(Object{{"UID", victim.uid}});
    answer["NodeNameToMetaVictims"] =
        Object{{victims.node, Object{{"Pods", std::move(pods)}, {"NumPDBViolations", 0}}}};
  }
  return answer;
}

HttpAnswer Extender::preempt(std::string_view body, Time now) {
  const auto request = json::parse(body);
  if (!request)
    return json_answer(
        400,
        Value(fmt::format("Failed to unmarshal web request object to ExtenderPreemptionArgs: {}",
                          request.error().message)));
  const auto done = preempt_pod(*request, now);
  return done ? json_answer(200, *done)
              : json_answer(done.error().code, Value(done.error().message));
}

HttpAnswer Extender::inspect(std::string_view method, std::string_view path) {
  constexpr std::string_view kGroups = "/v1/inspect/affinitygroups/";
  constexpr std::string_view kPodGroups = "/v1/inspect/podgroups/";  // their name since trees
  constexpr std::string_view kVirtual = "/v1/inspect/clusterstatus/virtualclusters/";
  if (path == kGroups.substr(0, kGroups.size() - 1) ||
      path == kPodGroups.substr(0, kPodGroups.size() - 1) ||
      path == kVirtual.substr(0, kVirtual.size() - 1)) {
    HttpAnswer moved;
    moved.status = 301;
    moved.location = std::string(path) + "/";
    moved.content_type = "text/html; charset=utf-8";
    moved.body = fmt::format("<a href=\"{}\">Moved Permanently</a>.\n\n", moved.location);
    return moved;
  }
  const bool known = path == "/" || path.starts_with(kGroups) || path.starts_with(kPodGroups) ||
                     path == "/v1/inspect/clusterstatus" ||
                     path == "/v1/inspect/clusterstatus/physicalcluster" ||
                     path.starts_with(kVirtual);
  if (!known) return json_answer(404, Value(fmt::format("Path not found: {}", path)));
  if (method != "GET")
    return json_answer(400, Value(fmt::format("NotImplemented: {}: {}", method, path)));
  if (path == "/") {
    Array paths;
    for (const char* one : kPaths) paths.push_back(Value(one));
    return json_answer(200, Object{{"paths", std::move(paths)}});
  }
  if (path.starts_with(kGroups) || path.starts_with(kPodGroups)) {
    const std::string name(
        path.substr(path.starts_with(kGroups) ? kGroups.size() : kPodGroups.size()));
    if (name.empty()) return json_answer(200, inspect_groups(allocator_));
    const Group* group = allocator_.find_group(name);
    if (group == nullptr) {
      return json_answer(
          400,
          Value(user_error(fmt::format(
              "Affinity group {} does not exist since it is not allocated or preempting", name))));
    }
    return json_answer(200, inspect_group(allocator_, *group));
  }
  if (path.starts_with(kVirtual)) {
    const std::string name(path.substr(kVirtual.size()));
    if (name.empty()) return json_answer(200, inspect_virtual_clusters(allocator_));
    const Index vc = allocator_.cells().find_vc(name);
    if (vc == kNone)
      return json_answer(400, Value(user_error(fmt::format("VC {} not found", name))));
    return json_answer(200, inspect_virtual(allocator_, vc));
  }
  return json_answer(200,
                     path == "/v1/inspect/clusterstatus" ? inspect_cluster(allocator_)
                                                         : inspect_physical(allocator_));
}

HttpAnswer Extender::handle(std::string_view method,
                            std::string_view path,
                            std::string_view body,
                            Time now) {
  const std::string decoded =
      percent_decode(path.substr(0, path.find('?')), false).value_or(std::string(path));
  if (decoded == "/v1/extender/filter") return filter(body, now);
  if (decoded == "/v1/extender/bind") return bind(body);
  if (decoded == "/v1/extender/preempt") return preempt(body, now);
  return inspect(method, decoded);
}

}  // namespace muster::hived
