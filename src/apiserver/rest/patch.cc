/// PATCH in its four forms.
#include <fmt/core.h>

#include <set>

#include "apiserver/registry/strategy.h"
#include "apiserver/registry/writer.h"
#include "apiserver/rest/convert.h"
#include "apiserver/rest/read_ahead.h"
#include "apiserver/rest/rest.h"
#include "base/strings.h"
#include "kube/apply/apply.h"
#include "kube/apply/strategic.h"
#include "kube/kinds/defaults.h"
#include "kube/kinds/pod.h"
#include "kube/kinds/validate.h"
#include "kube/meta.h"
#include "kube/settled.h"
#include "net/http/query.h"

namespace muster::apiserver {
namespace {

using kube::PatchType;

Result<PatchType> patch_type(const Call& call) {
  const bool strategic = call.patch == PatchType::kStrategic;
  if (call.patch && !(strategic && call.resource->custom())) return *call.patch;
  Error error;
  error.code = Code::kUnsupportedMediaType;
  error.message =
      strategic
          ? "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, "
            "application/apply-patch+yaml"
          : "415: Unsupported Media Type";
  return fail(std::move(error));
}

Result<kube::ObjectPtr> patch_body(const Call& call,
                                   PatchType type,
                                   std::vector<std::string>* duplicates) {
  if (call.object) {
    auto value = kube::settled(call.object);
    if (!value) return fail(bad_request(value.error().message));
    return value;
  }
  if (type == PatchType::kApply) {
    auto value = yaml_body(call);
    if (!value && value.error().code == Code::kTooLarge) return fail(value.error());
    if (!value)
      return fail(bad_request(fmt::format("error decoding YAML: {}", value.error().message)));
    if (!value->is_object())
      return fail(bad_request("error decoding YAML: the apply patch must be an object"));
    return std::make_shared<const json::Value>(std::move(*value));
  }
  auto value = json_body(call, duplicates);
  if (!value && value.error().code == Code::kTooLarge) return fail(value.error());
  if (!value) return fail(bad_request("invalid JSON patch"));
  if (type == PatchType::kJson && !value->is_array()) {
    return fail(bad_request(
        "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"));
  }
  if (type != PatchType::kJson && !value->is_object()) {
    const std::string_view kind = value->is_array()    ? "array"
                                  : value->is_string() ? "string"
                                  : value->is_bool()   ? "bool"
                                                       : "number";
    return fail(bad_request(
        fmt::format("{}json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                    type == PatchType::kMerge ? "error decoding patch: " : "",
                    kind)));
  }
  return std::make_shared<const json::Value>(std::move(*value));
}

/// Whether the patch can change nothing but the status. The uid by which agents say which object they
/// mean is compared with its own (check_identity).
bool names_status_alone(const Call& call, PatchType type, const json::Value& patch) {
  const Resource& resource = *call.resource;
  if (call.subresource != "status" || resource.custom() || resource.type == nullptr) return false;
  if (type != PatchType::kStrategic && type != PatchType::kMerge) return false;
  for (const auto& member : json::as_object(patch)) {
    const bool identity = member.key() == "metadata" &&
                          json::as_object(member.value()).size() == 1 &&
                          !json::string_at(member.value(), "uid").empty();
    if (member.key() != "status" && !identity) return false;
  }
  return true;
}

Error nameless(const Call& call) {
  return bad_request(fmt::format(
      "the name of the object ({} based on URL) was undeterminable: name must be provided",
      call.name));
}

/// Name and namespace are the URL's; who it is never changes.
Result<void> check_identity(const Call& call, const json::Value& next, const json::Value& live) {
  const std::string_view name = kube::name_of(next);
  if (name.empty()) return fail(nameless(call));
  if (name != kube::name_of(live)) {
    return fail(bad_request(fmt::format(
        "the name of the object ({}) does not match the name on the URL ({})", name, call.name)));
  }
  const std::string_view ns = kube::namespace_of(next);
  if (call.resource->info.namespaced && !ns.empty() && ns != call.ns) {
    return fail(bad_request(
        "the namespace of the provided object does not match the namespace sent on the request"));
  }
  const std::string_view uid = kube::uid_of(next);
  if (!uid.empty() && uid != kube::uid_of(live)) {
    Cause cause{"FieldValueInvalid",
                fmt::format("Invalid value: {}: field is immutable", quoted(uid)),
                "metadata.uid"};
    return fail(kube::invalid(call.resource->info.gvk(), call.name, {std::move(cause)}));
  }
  return {};
}

Result<json::Value> apply_patch(Call& call,
                                PatchType type,
                                const json::Value& patch,
                                const std::vector<std::string>& duplicates,
                                const json::Value& live) {
  json::Value next(call.memory.storage());
  switch (type) {
    case PatchType::kJson: {
      next = live;
      const auto done = json::json_patch(next, patch);
      if (!done) {
        Error error;
        error.code = Code::kInvalid;
        error.message = "the server rejected our request due to an error in our request";
        return fail(std::move(error));
      }
      break;
    }
    case PatchType::kMerge:
      next = live;
      json::merge_patch(next, patch);
      break;
    case PatchType::kStrategic: {
      if (call.resource->type == nullptr)
        return fail(bad_request("strategic merge patch is not supported for this kind"));
      auto merged =
          kube::strategic_merged(*call.resource->type, live, patch, call.memory.storage());
      if (!merged) return fail(merged.error());
      json::replace(next, std::move(*merged));
      // Directives may take these two away; what the object is does not depend on them.
      for (const std::string_view key : {"kind", "apiVersion"}) {
        if (next.is_object() && json::at(next, key).is_null())
          next.get_object()[key] = json::at(live, key);
      }
      break;
    }
    case PatchType::kApply:
      next = live;
      break;
  }
  const auto checked = check_patched(call, next, duplicates);
  if (!checked) return fail(checked.error());
  const auto same = check_identity(call, next, live);
  if (!same) return fail(same.error());
  return next;
}

Result<json::Value> check_applied(Call& call, json::Value applied) {
  const Resource& resource = *call.resource;
  if (json::string_at(applied, "kind").empty() || json::string_at(applied, "apiVersion").empty()) {
    return fail(bad_request(fmt::format("invalid object type: {}, Kind={}",
                                        json::as_string(json::at(applied, "apiVersion"), "/"),
                                        json::string_at(applied, "kind"))));
  }
  if (json::string_at(applied, "kind") != resource.info.kind ||
      json::string_at(applied, "apiVersion") != resource.api_version()) {
    const std::string_view version = json::string_at(applied, "apiVersion");
    return fail(bad_request(fmt::format("invalid object type: {}{}, Kind={}",
                                        version.find('/') == std::string_view::npos ? "/" : "",
                                        version,
                                        json::string_at(applied, "kind"))));
  }
  if (!json::at(applied, "metadata", "managedFields").is_null())
    return fail(bad_request("metadata.managedFields must be nil"));
  const std::string_view name = kube::name_of(applied);
  if (!name.empty() && name != call.name) {
    return fail(bad_request(fmt::format(
        "the name of the object ({}) does not match the name on the URL ({})", name, call.name)));
  }
  json::make(applied, {"metadata", "name"}) = call.name;
  if (resource.info.namespaced) {
    const std::string_view ns = kube::namespace_of(applied);
    if (!ns.empty() && ns != call.ns)
      return fail(bad_request(
          "the namespace of the provided object does not match the namespace sent on the request"));
    json::make(applied, {"metadata", "namespace"}) = call.ns;
  }
  const auto checked = check_patched(call, applied, {});
  if (!checked) return fail(checked.error());
  // "cpu: 1" is the stored "1", not a change of it.
  if (!resource.custom() && resource.type != nullptr)
    kube::canonicalise_values(*resource.type, applied);
  return applied;
}

/// A small patch of a large object. Muster's own parts patch what is small, thousands of times.
bool changes_large(Core& core, const Call& call) {
  if (call.in_process) return false;
  const StoredPtr live = core.find(*call.resource, call.ns, call.name);
  return live && live->object.text_size() >= kReadAheadFrom;
}

Task<Result<StoredPtr>> server_side_apply(Core& core,
                                          Call& call,
                                          json::Value applied,
                                          WriteOptions options,
                                          bool force,
                                          bool named,
                                          bool* created) {
  kube::ApplyRequest request;
  request.manager = options.manager;
  request.api_version = call.resource->api_version();
  request.subresource = call.subresource;
  request.force = force;
  request.now = core.env.now();
  options.apply = true;
  const kube::Shape* shape = call.resource->shape();
  // An object that goes or comes between the look and the write is met by looking again.
  for (int attempt = 0;; ++attempt) {
    if (core.find(*call.resource, call.ns, call.name) == nullptr && call.subresource.empty()) {
      if (!named) co_return fail(nameless(call));
      Result<json::Value> fresh;
      const auto apply = [&] {
        fresh = kube::apply(shape, std::nullopt, applied, request);
        if (fresh) apply_defaults(*call.resource, *fresh);
      };
      if (options.beside)
        co_await core.env.run_on_worker(apply);
      else
        apply();
      if (!fresh) co_return fail(fresh.error());
      json::remove(*fresh, {"metadata", "resourceVersion"});
      *created = true;
      auto made = co_await core.writer->create(
          call.resource, call.ns, std::move(*fresh), options, call.user, &call.warnings);
      if (!made && made.error().code == Code::kAlreadyExists && attempt < 3) continue;
      co_return made;
    }
    *created = false;
    auto updated = co_await core.writer->update(
        call.resource,
        call.ns,
        call.name,
        [&](const json::Value& live) -> Result<json::Value> {
          const std::string_view version = kube::resource_version_of(applied);
          if (!version.empty() && version != kube::resource_version_of(live))
            return fail(modified(*call.resource, call.name));
          return kube::apply(shape, live, applied, request);
        },
        options);
    if (!updated && updated.error().code == Code::kNotFound && attempt < 3 &&
        call.subresource.empty())
      continue;
    co_return updated;
  }
}

/// pods/resize: cpu and memory of containers, nothing else of the body.
Result<json::Value> resized(const Call& call, const json::Value& next, const json::Value& live) {
  json::Value result = live;
  const auto forbid = [&](std::string message, std::string reason) {
    return fail(kube::invalid(call.resource->info.gvk(),
                              call.name,
                              {Cause{std::move(reason), std::move(message), "spec"}}));
  };
  bool changed = false;
  for (const std::string_view list : {"containers", "initContainers"}) {
    const json::Array& wanted = json::array_at(next, "spec", list);
    if (!json::at(result, "spec", list).is_array()) continue;
    for (json::Value& container : json::make(result, {"spec", list}).get_array()) {
      for (const json::Value& other : wanted) {
        if (!json::equal(json::at(other, "name"), json::at(container, "name"))) continue;
        const json::Value& resources = json::at(other, "resources");
        for (const std::string_view which : {"limits", "requests"}) {
          json::Object before = json::object_at(container, "resources", which);
          json::Object after = json::object_at(resources, which);
          for (const std::string_view mutable_name : {"cpu", "memory"}) {
            before.erase(mutable_name);
            after.erase(mutable_name);
          }
          if (!json::equal(json::Value(before), json::Value(after)))
            return forbid("Forbidden: only cpu and memory resources are mutable",
                          "FieldValueForbidden");
        }
        if (!json::equal(json::at(container, "resources"), resources)) {
          container.get_object()["resources"] = resources;
          changed = true;
        }
        if (const json::Value& policy = json::at(other, "resizePolicy"); !policy.is_null())
          container.get_object()["resizePolicy"] = policy;
      }
    }
  }
  if (!changed) return result;
  const std::string quality = kube::qos_class(result);
  if (quality != json::string_at(live, "status", "qosClass")) {
    return forbid(
        fmt::format("Invalid value: {}: Pod QOS Class may not change as a result of resizing",
                    quoted(json::string_at(live, "status", "qosClass"))),
        "FieldValueInvalid");
  }
  for (const json::Value& status : json::array_at(live, "status", "containerStatuses")) {
    if (json::at(status, "state", "running").is_object() &&
        json::at(status, "resources").is_null()) {
      return forbid("Forbidden: Pod running on node without support for resize",
                    "FieldValueForbidden");
    }
  }
  json::make(result, {"metadata", "generation"}) = json::int_at(live, "metadata", "generation") + 1;
  return result;
}

Result<json::Value> with_ephemeral(const Call& call, json::Value next, const json::Value& live) {
  json::Value result = live;
  apply_defaults(*call.resource, next);
  const json::Value& containers = json::at(next, "spec", "ephemeralContainers");
  if (json::equal(containers, json::at(live, "spec", "ephemeralContainers"))) return result;
  std::set<std::string_view> names;
  for (const std::string_view list : {"containers", "initContainers"}) {
    for (const json::Value& each : json::array_at(live, "spec", list))
      names.insert(json::string_at(each, "name"));
  }
  std::vector<Cause> causes;
  const json::Array& given = json::as_array(containers);
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string_view name = json::string_at(given[i], "name");
    const std::string field = fmt::format("spec.ephemeralContainers[{}]", i);
    if (name.empty())
      causes.push_back({"FieldValueRequired", "Required value", field + ".name"});
    else if (!names.insert(name).second)
      causes.push_back({"FieldValueDuplicate",
                        fmt::format("Duplicate value: {}", quoted(name)),
                        field + ".name"});
    if (json::string_at(given[i], "image").empty())
      causes.push_back({"FieldValueRequired", "Required value", field + ".image"});
  }
  if (!causes.empty())
    return fail(kube::invalid(call.resource->info.gvk(), call.name, std::move(causes)));
  json::make(result, {"spec", "ephemeralContainers"}) = containers;
  json::make(result, {"metadata", "generation"}) = json::int_at(live, "metadata", "generation") + 1;
  return result;
}

}  // namespace

Task<Result<Reply>> patch_object(Core& core, Call& call, Accepted accepted) {
  const auto type = patch_type(call);
  if (!type) co_return fail(type.error());
  auto options = write_options(call, "PatchOptions");
  if (!options) co_return fail(options.error());
  const bool force = net::on(call.target, "force");
  if (*type == PatchType::kApply && call.target.get("fieldManager").empty()) {
    co_return fail(invalid_option("PatchOptions",
                                  "fieldManager",
                                  "FieldValueRequired",
                                  "Required value: is required for apply patch"));
  }
  if (*type != PatchType::kApply && call.target.has("force")) {
    co_return fail(invalid_option("PatchOptions",
                                  "force",
                                  "FieldValueForbidden",
                                  "Forbidden: may not be specified for non-apply patch"));
  }
  options->beside = is_large(call) || changes_large(core, call);
  std::vector<std::string> duplicates;
  auto patch = patch_body(call, *type, &duplicates);
  if (!patch) co_return fail(patch.error());
  call.status_alone = names_status_alone(call, *type, **patch);
  options->status_alone = call.status_alone;

  Result<StoredPtr> stored;
  bool created = false;
  if (*type == PatchType::kApply) {
    const bool named = !kube::name_of(**patch).empty();
    Result<json::Value> applied;
    if (options->beside)
      co_await core.env.run_on_worker([&] { applied = check_applied(call, **patch); });
    else
      applied = check_applied(call, **patch);
    if (!applied) co_return fail(applied.error());
    stored = co_await server_side_apply(
        core, call, std::move(*applied), *options, force, named, &created);
  } else {
    stored = co_await core.writer->update(
        call.resource,
        call.ns,
        call.name,
        [&](const json::Value& live) -> Result<json::Value> {
          auto next = apply_patch(call, *type, **patch, duplicates, live);
          if (!next) return next;
          if (call.subresource == "resize") return resized(call, *next, live);
          if (call.subresource == "ephemeralcontainers")
            return with_ephemeral(call, std::move(*next), live);
          return next;
        },
        *options);
  }
  if (!stored) co_return fail(stored.error());
  auto response = object_response(core, call, accepted, created ? 201 : 200, *stored);
  if (!response) co_return response;
  co_return with_warnings(std::move(*response), call);
}

}  // namespace muster::apiserver
