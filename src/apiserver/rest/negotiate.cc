#include "apiserver/rest/negotiate.h"

#include <fmt/core.h>

#include "apiserver/rest/errors.h"
#include "apiserver/rest/go_json.h"
#include "apiserver/rest/read_ahead.h"
#include "base/strings.h"
#include "kube/names.h"
#include "kube/settled.h"

namespace muster::apiserver {
namespace {

struct Clause {
  std::string type;
  std::string as, group, version;
};

Clause parse_clause(std::string_view text) {
  Clause clause;
  bool first = true;
  for (const std::string& part : split(text, ';')) {
    const std::string_view piece = trim(part);
    if (first) {
      clause.type = to_lower(piece);
      first = false;
      continue;
    }
    const auto equals = piece.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = piece.substr(0, equals);
    const std::string value(piece.substr(equals + 1));
    if (key == "as") clause.as = value;
    if (key == "g") clause.group = value;
    if (key == "v") clause.version = value;
  }
  return clause;
}

/// True when the clause can be served; fills `accepted`.
bool serve(const Clause& clause, bool discovery, Accepted* accepted) {
  const bool json =
      clause.type == "application/json" || clause.type == "*/*" || clause.type == "application/*";
  const bool yaml = clause.type == "application/yaml";
  if (!json && !yaml) return false;
  accepted->yaml = yaml;
  if (clause.as.empty()) {
    accepted->form = Form::kObject;
    return true;
  }
  if (discovery) {
    if (clause.as != "APIGroupDiscoveryList" || clause.group != kube::groups::kApiDiscovery ||
        clause.version != "v2" || yaml)
      return false;
    accepted->form = Form::kDiscovery;
    return true;
  }
  if (clause.group != "meta.k8s.io" || (clause.version != "v1" && clause.version != "v1beta1"))
    return false;
  if (clause.as == "Table") {
    accepted->form = Form::kTable;
    accepted->table_version = clause.version;
    return true;
  }
  if (clause.as == "PartialObjectMetadata") {
    accepted->form = Form::kPartialObject;
    return true;
  }
  if (clause.as == "PartialObjectMetadataList") {
    accepted->form = Form::kPartialObjectList;
    return true;
  }
  return false;
}

/// What Kubernetes shows of a body it cannot read.
std::string summary(std::string_view body) {
  constexpr std::size_t kMost = 30;
  if (body.empty()) return "<empty>";
  const std::string_view head = body.substr(0, kMost);
  std::string shown;
  if (body[0] == '{') {
    shown = std::string(head);
  } else {
    for (const char c : head) shown += fmt::format("{:02x}", static_cast<unsigned char>(c));
  }
  return body.size() > kMost ? shown + " ..." : shown;
}

Error unrecognized(std::string_view kind, std::string_view why, std::string_view body) {
  return bad_request(
      fmt::format("the object provided is unrecognized (must be of type {}): {} ({})",
                  kind,
                  why,
                  summary(body)));
}

/// kind and apiVersion are read before anything else.
Result<void> check_type_meta(const json::Value& value,
                             std::string_view kind,
                             std::string_view body) {
  const auto go = [](const json::Value& is) {
    return is.is_array()    ? "array"
           : is.is_string() ? "string"
           : is.is_object() ? "object"
           : is.is_bool()   ? "bool"
                            : "number";
  };
  if (!value.is_object()) {
    return fail(unrecognized(
        kind,
        fmt::format(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct {{ APIVersion string "
            "\"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            go(value)),
        body));
  }
  for (const std::string_view key : {"kind", "apiVersion"}) {
    const json::Value& is = json::at(value, key);
    if (is.is_null() || is.is_string()) continue;
    return fail(unrecognized(
        kind,
        fmt::format(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go struct field .{} of type string",
            go(is),
            key),
        body));
  }
  const std::string_view version = json::string_at(value, "apiVersion");
  if (split(version, '/').size() > 2)
    return fail(
        unrecognized(kind, fmt::format("unexpected GroupVersion string: {}", version), body));
  return {};
}

Error unsupported_body() {
  Error error;
  error.code = Code::kUnsupportedMediaType;
  error.message =
      "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, "
      "application/vnd.kubernetes.protobuf";
  return error;
}

}  // namespace

Result<Accepted> negotiate(const net::Request& request, bool discovery, bool collection) {
  Accepted accepted;
  const std::string_view header = request.headers.get("Accept");
  if (trim(header).empty()) return accepted;
  bool known_type = false;
  for (const std::string& part : split(header, ',')) {
    const Clause clause = parse_clause(part);
    if (serve(clause, discovery, &accepted)) return accepted;
    known_type = known_type || clause.type == "application/json" ||
                 clause.type == "application/yaml" ||
                 clause.type == "application/vnd.kubernetes.protobuf";
  }
  Error error;
  error.code = Code::kNotAcceptable;
  // Protobuf stands in the list because bodies may be protobuf; answers are JSON or YAML.
  error.message =
      known_type
          ? "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
          : "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf";
  if (!known_type && collection)
    error.message +=
        ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
  return fail(std::move(error));
}

std::string media_type(const net::Request& request) {
  const std::string_view header = request.headers.get("Content-Type");
  return to_lower(trim(header.substr(0, header.find(';'))));
}

Result<Body> decode_body(const Call& call, std::string_view kind, bool want_duplicates) {
  const net::Request& request = call.request;
  const std::string type = media_type(request);
  Body body;
  if (call.object) {
    auto value = kube::settled(*call.object, call.memory.storage());
    if (!value) return fail(bad_request(value.error().message));
    json::replace(body.value, std::move(*value));
  } else if (type.empty() || type == "application/json") {
    auto value = json_body(call, want_duplicates ? &body.duplicate_fields : nullptr);
    if (!value) {
      if (value.error().code == Code::kTooLarge) return fail(value.error());
      std::string why = go_json_error(request.body);
      if (why.empty()) why = value.error().message;
      return fail(
          unrecognized(kind, "couldn't get version/kind; json parse error: " + why, request.body));
    }
    json::replace(body.value, std::move(*value));
  } else if (type == "application/yaml" || type == "application/x-yaml") {
    auto value = yaml_body(call);
    if (!value) {
      if (value.error().code == Code::kTooLarge) return fail(value.error());
      return fail(unrecognized(kind, value.error().message, request.body));
    }
    body.value = std::move(*value);
  } else if (type == "application/vnd.kubernetes.protobuf" && !call.resource->custom()) {
    auto value = protobuf_body(call);
    if (!value && value.error().code == Code::kTooLarge) return fail(value.error());
    if (!value) return fail(unrecognized(kind, value.error().message, request.body));
    body.value = std::move(*value);
  } else {
    return fail(unsupported_body());
  }
  if (body.value.is_null()) body.value = json::Object();
  const auto typed = check_type_meta(body.value, kind, request.body);
  if (!typed) return fail(typed.error());
  return body;
}

Result<kube::ObjectPtr> read_body(const Call& call, std::string_view kind) {
  if (!call.object || call.object->is_null()) {
    auto body = decode_body(call, kind, false);
    if (!body) return fail(body.error());
    return std::make_shared<const json::Value>(std::move(body->value));
  }
  auto value = kube::settled(call.object);
  if (!value) return fail(bad_request(value.error().message));
  const auto typed = check_type_meta(**value, kind, call.request.body);
  if (!typed) return fail(typed.error());
  return std::move(*value);
}

net::Response encode(const Accepted& accepted, int status, const json::Value& value) {
  if (!accepted.yaml) {
    net::Response response = json_response(status, value);
    if (accepted.pretty) response.body = json::dump_pretty(value) + "\n";
    return response;
  }
  net::Response response;
  response.status = status;
  response.headers.set("Content-Type", "application/yaml");
  response.body = json::to_yaml(value);
  return response;
}

}  // namespace muster::apiserver
