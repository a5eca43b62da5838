#include "apiserver/audit/event.h"

#include "apiserver/rest/read_ahead.h"
#include "base/strings.h"
#include "json/yaml.h"
#include "kube/apply/managed.h"
#include "kube/names.h"
#include "kube/schema/protobuf.h"

namespace muster::apiserver::audit {
namespace {

/// An error that is longer is no Status of ours.
constexpr std::size_t kFailureBytesMax = 64 * 1024;

json::Value user_value(const User& user) {
  json::Object out;
  out["username"] = user.name;
  if (!user.uid.empty()) out["uid"] = user.uid;
  if (!user.groups.empty()) out["groups"] = json::Array(user.groups.begin(), user.groups.end());
  if (!user.extra.empty()) {
    json::Object extra;
    for (const auto& [key, values] : user.extra)
      extra[key] = json::Array(values.begin(), values.end());
    out["extra"] = std::move(extra);
  }
  return out;
}

/// Null if it is no object that can be read: the body of a request may be anything.
json::Value value_of(const Content& content) {
  if (content.object) return *content.object;
  if (content.text.empty()) return nullptr;
  Result<json::Value> read = json::Value();
  if (content.type.find("protobuf") != std::string::npos)
    read = kube::decode_protobuf(kube::Schema::builtin(), content.text);
  else if (content.type.find("yaml") != std::string::npos)
    read = json::parse_yaml_one(content.text, kValuesMax);
  else
    read = json::parse(content.text);
  return read ? std::move(*read) : json::Value();
}

void drop_managed_fields(json::Value& object) {
  json::remove(object, {"metadata", "managedFields"});
  if (!object.is_object()) return;
  if (json::Value* items = object.get_object().if_contains("items");
      items != nullptr && items->is_array()) {
    for (json::Value& item : items->get_array()) json::remove(item, {"metadata", "managedFields"});
  }
}

json::Value body_value(const Content& content, bool omit_managed_fields) {
  json::Value value = value_of(content);
  if (omit_managed_fields)
    drop_managed_fields(value);
  else if (content.object)
    kube::unpack_managers(value);
  return value;
}

/// A Status without what its metadata and details say.
json::Value status_value(const Event& event) {
  json::Object out = {{"metadata", json::Object()}};
  if (event.code >= 400 && event.failure.text.size() <= kFailureBytesMax) {
    const json::Value status = value_of(event.failure);
    const bool quotes = event.secret && (event.code == 400 || event.code == 422);
    for (const std::string_view key : {"status", "message", "reason"}) {
      // What is wrong with a body may quote it.
      if (quotes && key == "message") continue;
      const json::Value& value = json::at(status, key);
      if (value.is_string()) out[key] = value;
    }
  }
  out["code"] = event.code;
  return out;
}

json::Value reference_of(const Event& event) {
  json::Object out;
  const auto add = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) out[key] = value;
  };
  add("resource", event.resource);
  add("namespace", event.ns);
  add("name", event.name);
  add("apiGroup", event.group);
  add("apiVersion", event.version);
  add("subresource", event.subresource);
  return out;
}

std::string host_of(const std::string& address) {
  const auto colon = address.rfind(':');
  std::string host = address.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  return host;
}

}  // namespace

std::size_t Event::bytes() const {
  return 1024 + uri.size() + agent.size() + failure.text.size() + request.text.size() +
         response.text.size();
}

bool holds_secrets(std::string_view group,
                   std::string_view resource,
                   std::string_view subresource) {
  if (group.empty())
    return resource == "secrets" || (resource == "serviceaccounts" && subresource == "token");
  return group == kube::groups::kAuthentication && resource == "tokenreviews";
}

std::string line_of(const Event& event) {
  json::Object out;
  out["kind"] = "Event";
  out["apiVersion"] = "audit.k8s.io/v1";
  out["level"] = name_of(event.level);
  out["auditID"] = event.id;
  out["stage"] = name_of(event.stage);
  out["requestURI"] = event.uri;
  out["verb"] = event.verb;
  out["user"] = user_value(event.user);
  if (event.acting) out["impersonatedUser"] = user_value(*event.acting);
  json::Array sources;
  for (const std::string& each : split_nonempty(event.forwarded, ','))
    sources.push_back(json::Value(trim(each)));
  if (!event.source.empty()) sources.push_back(json::Value(host_of(event.source)));
  if (!sources.empty()) out["sourceIPs"] = std::move(sources);
  if (!event.agent.empty()) out["userAgent"] = event.agent;
  if (!event.resource.empty()) out["objectRef"] = reference_of(event);
  if (event.code != 0) out["responseStatus"] = status_value(event);
  if (!event.secret) {
    if (auto body = body_value(event.request, event.omit_managed_fields); !body.is_null())
      out["requestObject"] = std::move(body);
    if (auto body = body_value(event.response, event.omit_managed_fields); !body.is_null())
      out["responseObject"] = std::move(body);
  }
  out["requestReceivedTimestamp"] = format_micro_time(event.received);
  out["stageTimestamp"] = format_micro_time(event.at);
  if (!event.annotations.empty()) {
    json::Object annotations;
    for (const auto& [key, value] : event.annotations) annotations[key] = value;
    out["annotations"] = std::move(annotations);
  }
  return json::dump(out);
}

}  // namespace muster::apiserver::audit
