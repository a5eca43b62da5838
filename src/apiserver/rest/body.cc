/// Bodies and options of writes.
#include <fmt/core.h>

#include "apiserver/registry/strategy.h"
#include "apiserver/rest/go_json.h"
#include "apiserver/rest/read_ahead.h"
#include "apiserver/rest/rest.h"
#include "base/strings.h"
#include "kube/kinds/validate.h"
#include "kube/meta.h"
#include "net/http/query.h"

namespace muster::apiserver {
namespace {

std::string field_validation(const Call& call) {
  const std::string_view given = call.target.get("fieldValidation");
  return given.empty() ? "Warn" : std::string(given);
}

Result<void> check_kind(const Call& call, json::Value& object) {
  const Resource& resource = *call.resource;
  const std::string kind = json::text_at(object, "kind");
  const std::string api_version = json::text_at(object, "apiVersion");
  const kube::Gvk given{resource.info.group, resource.info.version, kind};
  if (!kind.empty() && kind != resource.info.kind &&
      kube::Schema::builtin().find_type(given) == nullptr) {
    return fail(bad_request(fmt::format(
        "{} in version {} cannot be handled as a {}: no kind {} is registered for version {} in scheme \"pkg/api/legacyscheme/scheme.go:30\"",
        kind,
        quoted(resource.info.version),
        resource.info.kind,
        quoted(kind),
        quoted(resource.api_version()))));
  }
  if (!kind.empty() && kind != resource.info.kind) {
    return fail(bad_request(fmt::format(
        "{} in version {} cannot be handled as a {}: converting ({}.{}) to ({}.{}): unknown conversion",
        kind,
        quoted(resource.info.version),
        resource.info.kind,
        resource.info.version,
        kind,
        resource.info.group.empty() ? "core" : resource.info.group,
        resource.info.kind)));
  }
  if (!api_version.empty() && api_version != resource.api_version()) {
    return fail(bad_request(fmt::format(
        "{} in version {} cannot be handled as a {}: no kind {} is registered for version {} in scheme \"pkg/api/legacyscheme/scheme.go:30\"",
        resource.info.kind,
        quoted(resource.info.version),
        resource.info.kind,
        quoted(resource.info.kind),
        quoted(api_version))));
  }
  object.get_object()["kind"] = resource.info.kind;
  object.get_object()["apiVersion"] = resource.api_version();
  return {};
}

/// Lists unknown fields, and removes them. `status_alone`: the rest was looked at before.
Result<std::vector<std::string>> drop_unknown(const Resource& resource,
                                              json::Value& object,
                                              bool status_alone) {
  std::vector<std::string> unknown;
  if (resource.custom()) {
    if (resource.version->schema) resource.version->schema->prune(object, &unknown);
    // Metadata is Kubernetes' own, whatever the definition says.
    static const kube::Type* const kMetadata =
        kube::Schema::builtin().find_type("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    json::Value* metadata =
        object.is_object() ? object.get_object().if_contains("metadata") : nullptr;
    if (metadata == nullptr || kMetadata == nullptr) return unknown;
    const auto checked = kube::check_fields(*kMetadata, *metadata);
    if (!checked) return fail(checked.error());
    for (const std::string& field : *checked) unknown.push_back("metadata." + field);
    if (!checked->empty()) kube::drop_unknown_fields(*kMetadata, *metadata);
    return unknown;
  }
  if (resource.type == nullptr) return unknown;
  auto checked = status_alone ? kube::check_member(*resource.type, object, "status")
                              : kube::check_fields(*resource.type, object);
  if (!checked) return fail(checked.error());
  if (!checked->empty()) kube::drop_unknown_fields(*resource.type, object);
  return std::move(*checked);
}

/// An applied configuration is compared field by field with the schema, so it cannot have others,
/// whatever fieldValidation says.
Error undeclared(const Call& call,
                 const json::Value& object,
                 const std::vector<std::string>& fields) {
  std::vector<std::string> lines;
  for (const std::string& field : fields)
    lines.push_back(fmt::format(".{}: field not declared in schema", field));
  const kube::ResourceInfo& info = call.resource->info;
  Error error;
  error.code = Code::kInvalid;
  error.message = fmt::format("failed to create typed patch object ({}/{}; {}/{}, Kind={}): {}{}",
                              kube::namespace_of(object),
                              kube::name_of(object),
                              info.group,
                              info.version,
                              info.kind,
                              lines.size() > 1 ? "errors:\n  " : "",
                              join(lines, "\n  "));
  return error;
}

}  // namespace

Result<json::Value> decode_object(Call& call, std::string_view action) {
  const Resource& resource = *call.resource;
  const std::string validation = field_validation(call);
  if (validation != "Strict" && validation != "Warn" && validation != "Ignore") {
    return fail(invalid_option(
        fmt::format("{}Options", action),
        "fieldValidation",
        "FieldValueNotSupported",
        fmt::format(
            "Unsupported value: {}: supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
            quoted(validation))));
  }
  auto body = decode_body(call, resource.info.kind, validation != "Ignore");
  if (!body) return fail(body.error());
  json::Value object = std::move(body->value);
  const auto kind = check_kind(call, object);
  if (!kind) return fail(kind.error());
  if (const json::Value& metadata = json::at(object, "metadata");
      !metadata.is_null() && !metadata.is_object()) {
    return fail(bad_request(fmt::format(
        "{} in version {} cannot be handled as a {}: json: cannot unmarshal {} into Go struct field {}.metadata of type v1.ObjectMeta",
        resource.info.kind,
        quoted(resource.info.version),
        resource.info.kind,
        metadata.is_string()  ? "string"
        : metadata.is_array() ? "array"
        : metadata.is_bool()  ? "bool"
                              : "number",
        resource.info.kind)));
  }
  const auto unknown = drop_unknown(resource, object, /*status_alone=*/false);
  if (!unknown) {
    return fail(bad_request(fmt::format("{} in version {} cannot be handled as a {}: {}",
                                        resource.info.kind,
                                        quoted(resource.info.version),
                                        resource.info.kind,
                                        unknown.error().message)));
  }
  std::vector<std::string> problems;
  for (const std::string& field : body->duplicate_fields)
    problems.push_back(fmt::format("duplicate field {}", quoted(field)));
  for (const std::string& field : *unknown)
    problems.push_back(fmt::format("unknown field {}", quoted(field)));
  if (!problems.empty() && validation == "Strict") {
    return fail(bad_request(
        fmt::format("{} in version {} cannot be handled as a {}: strict decoding error: {}",
                    resource.info.kind,
                    quoted(resource.info.version),
                    resource.info.kind,
                    join(problems, ", "))));
  }
  if (validation == "Warn")
    call.warnings.insert(call.warnings.end(), problems.begin(), problems.end());
  if (resource.info.namespaced) {
    const std::string_view ns = kube::namespace_of(object);
    if (!ns.empty() && ns != call.ns)
      return fail(bad_request(
          "the namespace of the provided object does not match the namespace sent on the request"));
    json::make(object, {"metadata", "namespace"}) = call.ns;
  }
  apply_defaults(resource, object);
  return object;
}

Task<Result<json::Value>> decode_beside(Core& core, Call& call, std::string_view action) {
  if (!is_large(call)) co_return decode_object(call, action);
  Result<json::Value> object;
  co_await core.env.run_on_worker([&] { object = decode_object(call, action); });
  co_return object;
}

Result<void> check_patched(Call& call,
                           json::Value& object,
                           const std::vector<std::string>& duplicates) {
  const Resource& resource = *call.resource;
  const auto refuse = [&](const std::string& why) {
    const std::string patched = json::dump(object).substr(0, 4096);
    Cause cause{
        "FieldValueInvalid", fmt::format("Invalid value: {}: {}", quoted(patched), why), "patch"};
    return fail(kube::invalid(kube::Gvk(), "", {std::move(cause)}));
  };
  if (!object.is_object()) return refuse("the patched document is not an object");
  const std::string_view kind = json::string_at(object, "kind");
  const std::string_view version = json::string_at(object, "apiVersion");
  if (kind != resource.info.kind || version != resource.api_version()) {
    return refuse(
        fmt::format("{} in version {} cannot be handled as a {}: no such change of a stored object",
                    kind,
                    quoted(version),
                    resource.info.kind));
  }
  const auto unknown = drop_unknown(resource, object, call.status_alone);
  if (!unknown) return refuse(unknown.error().message);
  const std::string validation = field_validation(call);
  std::vector<std::string> problems;
  for (const std::string& field : duplicates)
    problems.push_back(fmt::format("duplicate field {}", quoted(field)));
  if (unknown->empty() && problems.empty()) return {};
  if (call.patch == kube::PatchType::kApply) return fail(undeclared(call, object, *unknown));
  for (const std::string& field : *unknown)
    problems.push_back(fmt::format("unknown field {}", quoted(field)));
  if (validation == "Strict") return refuse("strict decoding error: " + join(problems, ", "));
  if (validation == "Warn")
    call.warnings.insert(call.warnings.end(), problems.begin(), problems.end());
  return {};
}

Result<WriteOptions> write_options(Call& call, std::string_view options_kind) {
  WriteOptions options;
  for (const std::string& value : call.target.all("dryRun")) {
    if (value == "All") {
      options.dry_run = true;
    } else {
      return fail(invalid_option(
          options_kind,
          "dryRun",
          "FieldValueNotSupported",
          fmt::format("Unsupported value: [{}]: supported values: \"All\"", quoted(value))));
    }
  }
  const std::string_view manager = call.target.get("fieldManager");
  if (manager.size() > 128) {
    return fail(invalid_option(options_kind,
                               "fieldManager",
                               "FieldValueTooLong",
                               "Too long: may not be more than 128 bytes"));
  }
  options.manager = manager.empty() ? call.manager : std::string(manager);
  options.subresource = call.subresource;
  options.user = &call.user;
  options.warnings = &call.warnings;
  options.violations = &call.violations;
  return options;
}

namespace {

Result<void> check_delete_options(const json::Value& options) {
  const std::string_view kind = json::string_at(options, "kind");
  if (!kind.empty() && kind != "DeleteOptions") {
    return fail(bad_request(fmt::format(
        "no kind {} is registered for version {} in scheme \"pkg/api/legacyscheme/scheme.go:30\"",
        quoted(kind),
        quoted(json::string_at(options, "apiVersion")))));
  }
  static const kube::Type* const kOptions =
      kube::Schema::builtin().find_type("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions");
  if (kOptions == nullptr) return {};
  const auto checked = kube::check_fields(*kOptions, options);
  if (!checked) return fail(bad_request(checked.error().message));
  return {};
}

}  // namespace

Result<DeleteRequest> delete_request(const Call& call) {
  json::Value options = json::Object();
  if (!call.request.body.empty() || call.object) {
    auto body = decode_body(call, "DeleteOptions", false);
    if (!body) {
      const std::string why = go_json_error(call.request.body);
      if (body.error().code != Code::kBadRequest || why.empty()) return fail(body.error());
      return fail(bad_request("couldn't get version/kind; json parse error: " + why));
    }
    options = std::move(body->value);
    const auto good = check_delete_options(options);
    if (!good) return fail(good.error());
  }
  if (const std::string_view grace = call.target.get("gracePeriodSeconds");
      !grace.empty() && !parse_int(grace)) {
    return fail(
        bad_request(fmt::format("strconv.ParseInt: parsing {}: invalid syntax", quoted(grace))));
  }
  DeleteRequest request;
  const auto number = [&](std::string_view key) -> std::optional<std::int64_t> {
    const json::Value& value = json::at(options, key);
    if (value.is_number()) return json::as_int(value);
    return parse_int(call.target.get(key));
  };
  request.grace_s = number("gracePeriodSeconds");
  request.propagation = json::text_at(options, "propagationPolicy");
  if (request.propagation.empty())
    request.propagation = std::string(call.target.get("propagationPolicy"));
  const json::Value& orphan = json::at(options, "orphanDependents");
  const std::string_view orphan_query = call.target.get("orphanDependents");
  if (orphan.is_bool() || !orphan_query.empty()) {
    if (!request.propagation.empty()) {
      return fail(invalid_option(
          "DeleteOptions",
          "propagationPolicy",
          "FieldValueInvalid",
          fmt::format(
              "Invalid value: {}: orphanDependents and deletionPropagation cannot be both set",
              quoted(request.propagation))));
    }
    request.propagation = (orphan.is_bool() ? orphan.get_bool() : net::truthy(orphan_query))
                              ? "Orphan"
                              : "Background";
  }
  if (!request.propagation.empty() && request.propagation != "Background" &&
      request.propagation != "Foreground" && request.propagation != "Orphan") {
    return fail(invalid_option(
        "DeleteOptions",
        "propagationPolicy",
        "FieldValueNotSupported",
        fmt::format(
            "Unsupported value: {}: supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
            quoted(request.propagation))));
  }
  request.uid = json::text_at(options, "preconditions", "uid");
  request.resource_version = json::text_at(options, "preconditions", "resourceVersion");
  std::vector<std::string> dry_runs = call.target.all("dryRun");
  for (const json::Value& value : json::array_at(options, "dryRun"))
    dry_runs.push_back(json::text(value));
  for (const std::string& value : dry_runs) {
    if (value == "All") {
      request.dry_run = true;
    } else {
      return fail(invalid_option(
          "DeleteOptions",
          "dryRun",
          "FieldValueNotSupported",
          fmt::format("Unsupported value: [{}]: supported values: \"All\"", quoted(value))));
    }
  }
  return request;
}

Reply with_warnings(Reply response, const Call& call) {
  for (const std::string& warning : call.warnings) {
    std::string text;
    for (const char c : warning) {
      if (c == '"' || c == '\\') text += '\\';
      text += c == '\n' ? ' ' : c;
    }
    response.headers.add("Warning", "299 - \"" + text + "\"");
  }
  return response;
}

}  // namespace muster::apiserver
