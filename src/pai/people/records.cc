#include "pai/people/records.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/meta.h"
#include "pai/people/hex.h"

namespace muster::pai {
namespace {

/// A Secret's name has at most 253 characters.
constexpr std::size_t kNameMax = 126;

std::string field(const json::Value& secret, std::string_view key) {
  return base64_decode(json::string_at(secret, "data", key)).value_or("");
}

json::Value json_field(const json::Value& secret, std::string_view key) {
  auto parsed = json::parse(field(secret, key));
  return parsed ? std::move(*parsed) : json::Value();
}

void put(json::Value& secret, std::string_view key, std::string_view text) {
  json::make_object(secret, {"data"})[key] = base64_encode(text);
}

void name_secret(json::Value& secret, const char* ns, const std::string& name) {
  json::Object& metadata = json::make_object(secret, {"metadata"});
  metadata["namespace"] = ns;
  metadata["name"] = hex(name);
  secret.as_object()["apiVersion"] = "v1";
  secret.as_object()["kind"] = "Secret";
  if (!secret.as_object().contains("type")) secret.as_object()["type"] = "Opaque";
}

bool plain(char character) {
  return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
         (character >= '0' && character <= '9') || character == '_' || character == '.' ||
         character == '-';
}

}  // namespace

std::vector<std::string> strings_of(const json::Value& array) {
  std::vector<std::string> texts;
  for (const json::Value& each : json::as_array(array)) {
    if (each.is_string() && !contains(texts, json::as_string(each)))
      texts.emplace_back(json::as_string(each));
  }
  return texts;
}

json::Array array_of(const std::vector<std::string>& texts) {
  json::Array array;
  for (const std::string& text : texts) array.emplace_back(text);
  return array;
}

bool contains(const std::vector<std::string>& texts, std::string_view text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

bool good_user_name(std::string_view name) {
  return !name.empty() && name.size() <= kNameMax && std::all_of(name.begin(), name.end(), plain);
}

bool good_group_name(std::string_view name) { return good_user_name(name); }

bool GroupRecord::admin() const { return json::bool_at(json::Value(extension), "acls", "admin"); }

std::vector<std::string> GroupRecord::vcs() const {
  return strings_of(json::at(json::Value(extension), "acls", "virtualClusters"));
}

std::vector<std::string> GroupRecord::storages() const {
  return strings_of(json::at(json::Value(extension), "acls", "storageConfigs"));
}

std::optional<UserRecord> read_user(const json::Value& secret) {
  UserRecord user;
  user.name = field(secret, "username");
  if (!good_user_name(user.name) || hex(user.name) != kube::name_of(secret)) return std::nullopt;
  user.password = field(secret, "password");
  user.email = field(secret, "email");
  user.groups = strings_of(json_field(secret, "grouplist"));
  user.extension = json::as_object(json_field(secret, "extension"));
  return user;
}

std::optional<GroupRecord> read_group(const json::Value& secret) {
  GroupRecord group;
  group.name = field(secret, "groupname");
  if (!good_group_name(group.name) || hex(group.name) != kube::name_of(secret)) return std::nullopt;
  group.description = field(secret, "description");
  group.external_name = field(secret, "externalName");
  group.extension = json::as_object(json_field(secret, "extension"));
  return group;
}

std::optional<TokenRecord> read_tokens(const json::Value& secret) {
  const auto user = unhex(kube::name_of(secret));
  if (!user || !good_user_name(*user)) return std::nullopt;
  TokenRecord record{*user, {}};
  for (const auto& each : json::object_at(secret, "data")) {
    const auto token = base64_decode(json::as_string(each.value()));
    if (token && !token->empty()) record.tokens.emplace(each.key(), *token);
  }
  return record;
}

void write_user(const UserRecord& user, json::Value& secret) {
  if (!secret.is_object()) secret = json::Object();
  name_secret(secret, kUserNamespace, user.name);
  put(secret, "username", user.name);
  put(secret, "password", user.password);
  put(secret, "email", user.email);
  put(secret, "grouplist", json::dump(array_of(user.groups)));
  put(secret, "extension", json::dump(user.extension));
}

void write_group(const GroupRecord& group, json::Value& secret) {
  if (!secret.is_object()) secret = json::Object();
  name_secret(secret, kGroupNamespace, group.name);
  put(secret, "groupname", group.name);
  put(secret, "description", group.description);
  put(secret, "externalName", group.external_name);
  put(secret, "extension", json::dump(group.extension));
}

void write_tokens(const TokenRecord& tokens, json::Value& secret) {
  if (!secret.is_object()) secret = json::Object();
  name_secret(secret, kTokenNamespace, tokens.user);
  secret.as_object()["data"] = json::Object();
  for (const auto& [id, token] : tokens.tokens) put(secret, id, token);
}

GroupRecord group_of_vc(const std::string& vc) {
  return {.name = vc,
          .description = "virtual cluster " + vc,
          .external_name = "",
          .extension = {{"acls",
                         {{"admin", false},
                          {"virtualClusters", json::Array{json::Value(vc)}},
                          {"storageConfigs", json::Array()}}}}};
}

bool is_group_of_vc(const GroupRecord& group) {
  return !group.admin() && group.name != kDefaultGroup &&
         group.vcs() == std::vector<std::string>{group.name};
}

}  // namespace muster::pai
