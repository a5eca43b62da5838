/// The scale subresource: a Scale object over the replicas of any kind that has them.
#include <fmt/core.h>

#include "apiserver/registry/writer.h"
#include "apiserver/rest/read_ahead.h"
#include "apiserver/rest/rest.h"
#include "base/strings.h"
#include "kube/apply/strategic.h"
#include "kube/meta.h"
#include "kube/selector/selector.h"
#include "kube/shared.h"
#include "kube/table/table.h"

namespace muster::apiserver {
namespace {

struct Paths {
  std::string spec = ".spec.replicas", status = ".status.replicas", selector;
};

Paths paths_of(const Resource& resource) {
  Paths paths;
  if (resource.custom() && resource.version->scale) {
    paths.spec = resource.version->scale->spec_path;
    paths.status = resource.version->scale->status_path;
    paths.selector = resource.version->scale->selector_path;
  }
  return paths;
}

std::int64_t number_at(const json::Value& object, const std::string& path) {
  const auto found = kube::json_path(object, path);
  return found.empty() ? 0 : json::as_int(found.front());
}

std::string selector_text(const Resource& resource, const json::Value& object, const Paths& paths) {
  if (resource.custom()) {
    if (paths.selector.empty()) return "";
    const auto found = kube::json_path(object, paths.selector);
    return found.empty() ? "" : json::text(found.front());
  }
  const json::Value& selector = json::at(object, "spec", "selector");
  if (resource.storage == "replicationcontrollers") {
    std::vector<std::string> parts;
    for (const auto& member : json::as_object(selector))
      parts.push_back(std::string(member.key()) + "=" + json::text(member.value()));
    return join(parts, ",");
  }
  const auto parsed = kube::LabelSelector::from_object(selector);
  return parsed ? parsed->text() : "";
}

json::Value scale_of(const Resource& resource, const json::Value& object) {
  const Paths paths = paths_of(resource);
  json::Object metadata;
  for (const std::string_view key :
       {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    if (const json::Value& value = json::at(object, "metadata", key); !value.is_null())
      metadata[key] = value;
  }
  json::Object spec, status;
  const std::int64_t replicas = number_at(object, paths.spec);
  if (replicas != 0) spec["replicas"] = replicas;
  status["replicas"] = number_at(object, paths.status);
  if (const std::string selector = selector_text(resource, object, paths); !selector.empty())
    status["selector"] = selector;
  return json::Value{{"kind", "Scale"},
                     {"apiVersion", "autoscaling/v1"},
                     {"metadata", std::move(metadata)},
                     {"spec", std::move(spec)},
                     {"status", std::move(status)}};
}

/// Sets ".spec.replicas"-like paths.
void set_number(json::Value& object, const std::string& path, std::int64_t number) {
  json::Value* at = &object;
  for (const std::string& part : split_nonempty(path, '.')) {
    if (!at->is_object()) *at = json::Object();
    at = &at->get_object()[part];
  }
  *at = number;
}

}  // namespace

Task<Result<Reply>> get_scale(Core& core, Call& call, Accepted accepted) {
  const StoredPtr stored = core.find(*call.resource, call.ns, call.name);
  if (!stored) co_return fail(not_found(*call.resource, call.name));
  const Paths paths = paths_of(*call.resource);
  if (call.resource->custom() && kube::json_path(stored->object, paths.spec).empty()) {
    Error error;
    error.code = Code::kInternal;
    const std::string why =
        fmt::format("the spec replicas field {} does not exist", quoted(paths.spec));
    error.message = "Internal error occurred: " + why;
    error.causes.push_back({"", why, ""});
    co_return fail(std::move(error));
  }
  co_return value_reply(call, accepted, 200, scale_of(*call.resource, stored->object));
}

Task<Result<Reply>> update_scale(Core& core, Call& call, Accepted accepted) {
  auto options = write_options(call, "UpdateOptions");
  if (!options) co_return fail(options.error());
  Result<json::Value> body;
  if (call.verb == "update") {
    auto decoded = decode_body(call, "Scale", false);
    body = decoded ? Result<json::Value>(std::move(decoded->value))
                   : Result<json::Value>(fail(decoded.error()));
  } else if (call.object) {
    body = kube::settled(*call.object);
  } else {
    body = call.patch == kube::PatchType::kApply ? yaml_body(call) : json_body(call, nullptr);
  }
  if (!body) co_return fail(bad_request(body.error().message));
  const auto stored = co_await core.writer->update(
      call.resource,
      call.ns,
      call.name,
      [&](const json::Value& live) -> Result<json::Value> {
        json::Value scale = scale_of(*call.resource, live);
        if (call.verb == "update") {
          const std::string_view version = kube::resource_version_of(*body);
          if (!version.empty() && version != kube::resource_version_of(live))
            return fail(modified(*call.resource, call.name));
          scale = *body;
        } else if (call.patch == kube::PatchType::kJson) {
          const auto done = json::json_patch(scale, *body);
          if (!done)
            return fail(Code::kInvalid,
                        "the server rejected our request due to an error in our request");
        } else {
          json::merge_patch(scale, *body);
          const std::string_view version = kube::resource_version_of(*body);
          if (!version.empty() && version != kube::resource_version_of(live))
            return fail(modified(*call.resource, call.name));
        }
        const json::Value& replicas = json::at(scale, "spec", "replicas");
        if (!replicas.is_null() && !replicas.is_number())
          return fail(bad_request(
              "Scale in version \"v1\" cannot be handled as a Scale: json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32"));
        if (json::as_int(replicas) < 0) {
          Error error;
          error.code = Code::kInvalid;
          const std::string message = fmt::format(
              "Invalid value: {}: must be greater than or equal to 0", json::as_int(replicas));
          error.message = fmt::format(
              "Scale.autoscaling {} is invalid: spec.replicas: {}", quoted(call.name), message);
          error.subject = {call.name, "autoscaling", "Scale", ""};
          error.causes.push_back({"FieldValueInvalid", message, "spec.replicas"});
          return fail(std::move(error));
        }
        json::Value next = live;
        set_number(next, paths_of(*call.resource).spec, json::as_int(replicas));
        return next;
      },
      *options);
  if (!stored) co_return fail(stored.error());
  co_return value_reply(call, accepted, 200, scale_of(*call.resource, (*stored)->object));
}

}  // namespace muster::apiserver
