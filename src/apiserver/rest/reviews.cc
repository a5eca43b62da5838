/// Reviews: questions about who somebody is and what they may do. Nothing is stored.
#include <fmt/core.h>

#include "apiserver/auth/auth.h"
#include "apiserver/auth/rbac.h"
#include "apiserver/rest/rest.h"
#include "kube/kinds/validate.h"

namespace muster::apiserver {

json::Value user_info(const User& user) {
  json::Object info;
  info["username"] = user.name;
  if (!user.uid.empty()) info["uid"] = user.uid;
  json::Array groups;
  for (const std::string& group : user.groups) groups.push_back(json::Value(group));
  info["groups"] = std::move(groups);
  if (!user.extra.empty()) {
    json::Object extra;
    for (const auto& [key, values] : user.extra) {
      json::Array list;
      for (const std::string& value : values) list.push_back(json::Value(value));
      extra[key] = std::move(list);
    }
    info["extra"] = std::move(extra);
  }
  return json::Value(std::move(info));
}

namespace {

Attributes attributes_of(const json::Value& spec) {
  Attributes attributes;
  if (const json::Value& path = json::at(spec, "nonResourceAttributes"); path.is_object()) {
    attributes.path = json::text_at(path, "path");
    attributes.verb = json::text_at(path, "verb");
    return attributes;
  }
  const json::Value& resource = json::at(spec, "resourceAttributes");
  attributes.verb = json::text_at(resource, "verb");
  attributes.group = json::text_at(resource, "group");
  attributes.resource = json::text_at(resource, "resource");
  attributes.subresource = json::text_at(resource, "subresource");
  attributes.name = json::text_at(resource, "name");
  attributes.ns = json::text_at(resource, "namespace");
  return attributes;
}

User subject_of(const json::Value& spec) {
  User user;
  user.name = json::text_at(spec, "user");
  user.uid = json::text_at(spec, "uid");
  for (const json::Value& group : json::array_at(spec, "groups"))
    user.groups.push_back(json::text(group));
  return user;
}

json::Value rules_status(const Core& core, const User& user, const std::string& ns) {
  json::Array resources, paths;
  const auto copy = [](const json::Value& rule, std::initializer_list<std::string_view> keys) {
    json::Object result;
    for (const std::string_view key : keys) {
      if (const json::Value& value = json::at(rule, key); !value.is_null()) result[key] = value;
    }
    return json::Value(std::move(result));
  };
  core.authorizer->each_rule(user, ns, [&](const json::Value& rule) {
    if (!json::at(rule, "resources").is_null())
      resources.push_back(copy(rule, {"verbs", "apiGroups", "resources", "resourceNames"}));
    if (!json::at(rule, "nonResourceURLs").is_null())
      paths.push_back(copy(rule, {"verbs", "nonResourceURLs"}));
    return true;
  });
  return json::Value{{"resourceRules", std::move(resources)},
                     {"nonResourceRules", std::move(paths)},
                     {"incomplete", false}};
}

json::Value token_status(Core& core, const json::Value& spec) {
  std::vector<std::string> held;
  const auto user =
      core.authenticator->user_of_token(json::text_at(spec, "token"), core.env.now(), &held);
  if (!user) return json::Value{{"user", json::Object()}, {"error", "invalid bearer token"}};
  const json::Array& asked = json::array_at(spec, "audiences");
  json::Array audiences;
  for (const std::string& audience : held) {
    const bool wanted = asked.empty()
                            ? audience == core.options.issuer
                            : std::any_of(asked.begin(), asked.end(), [&](const json::Value& each) {
                                return json::as_string(each) == audience;
                              });
    if (wanted) audiences.push_back(json::Value(audience));
  }
  if (audiences.empty())
    return json::Value{{"user", json::Object()},
                       {"error", "[invalid bearer token, token audiences do not match]"}};
  return json::Value{
      {"authenticated", true}, {"user", user_info(*user)}, {"audiences", std::move(audiences)}};
}

/// One question at a time, about somebody.
Result<void> check_question(const Call& call, const json::Value& review, bool self) {
  const json::Value& spec = json::at(review, "spec");
  const json::Value& path = json::at(spec, "nonResourceAttributes");
  std::vector<Cause> causes;
  if (path.is_object() == json::at(spec, "resourceAttributes").is_object()) {
    causes.push_back(
        {"FieldValueInvalid",
         fmt::format(
             "Invalid value: {}: exactly one of nonResourceAttributes or resourceAttributes must be specified",
             json::dump(path)),
         "spec"});
  }
  if (!self && json::string_at(spec, "user").empty() && json::array_at(spec, "groups").empty()) {
    causes.push_back({"FieldValueInvalid",
                      "Invalid value: \"\": at least one of user or group must be specified",
                      "spec.user"});
  }
  if (!json::string_at(review, "metadata", "name").empty()) {
    causes.push_back(
        {"FieldValueInvalid",
         fmt::format("Invalid value: {}: must be empty", json::dump(json::at(review, "metadata"))),
         "metadata"});
  }
  if (causes.empty()) return {};
  return fail(kube::invalid(
      call.resource->info.gvk(), json::string_at(review, "metadata", "name"), std::move(causes)));
}

}  // namespace

Task<Result<Reply>> create_review(Core& core, Call& call, Accepted accepted) {
  auto object = decode_object(call, "Create");
  if (!object) co_return fail(object.error());
  const std::string& kind = call.resource->info.kind;
  const json::Value spec = json::at(*object, "spec");
  json::Value status;
  if (kind == "SelfSubjectReview") {
    status = json::Value{{"userInfo", user_info(call.user)}};
    json::make(*object, {"metadata", "creationTimestamp"}) = format_time(core.env.now());
  } else if (kind == "TokenReview") {
    if (json::string_at(spec, "token").empty())
      co_return fail(bad_request("token is required for TokenReview in authentication"));
    status = token_status(core, spec);
  } else if (kind == "SelfSubjectRulesReview") {
    const std::string ns = json::text_at(spec, "namespace");
    if (ns.empty()) co_return fail(bad_request("no namespace on request"));
    status = rules_status(core, call.user, ns);
  } else {
    const bool self = kind == "SelfSubjectAccessReview";
    const auto asked = check_question(call, *object, self);
    if (!asked) co_return fail(asked.error());
    Attributes attributes = attributes_of(spec);
    if (kind == "LocalSubjectAccessReview") attributes.ns = call.ns;
    const User user = self ? call.user : subject_of(spec);
    Reason reason;
    const bool allowed = core.authorizer->allowed(user, attributes, &reason);
    status = json::Value{{"allowed", allowed}};
    if (reason) status.get_object()["reason"] = *reason;
  }
  if (!json::at(*object, "metadata").is_object()) object->get_object()["metadata"] = json::Object();
  object->get_object()["status"] = std::move(status);
  order_members(*object);
  co_return with_warnings(value_reply(call, accepted, 201, std::move(*object)), call);
}

}  // namespace muster::apiserver
