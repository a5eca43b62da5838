/// Users, groups and tokens as OpenPAI keeps them: Secrets in three namespaces, named by the hex of
/// the name. Groups of users and extensions are JSON texts inside the data.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "json/json.h"

namespace muster::pai {

inline constexpr const char* kUserNamespace = "pai-user-v2";
inline constexpr const char* kGroupNamespace = "pai-group";
inline constexpr const char* kTokenNamespace = "pai-user-token";

/// Groups that always exist.
inline constexpr const char* kDefaultGroup = "default";
inline constexpr const char* kAdminGroup = "admingroup";
/// The virtual cluster of a cluster without cells, and of jobs that name none.
inline constexpr const char* kDefaultVc = "default";

struct UserRecord {
  std::string name;
  std::string password;  // hashed, see password.h
  std::string email;
  std::vector<std::string> groups;
  json::Object extension;
};

struct GroupRecord {
  std::string name;
  std::string description;
  std::string external_name;
  json::Object extension;

  [[nodiscard]] bool admin() const;
  [[nodiscard]] std::vector<std::string> vcs() const;
  [[nodiscard]] std::vector<std::string> storages() const;
};

/// By random id.
using Tokens = std::map<std::string, std::string>;

/// Nothing for a Secret that is not one of a user: another hand may have put anything there.
std::optional<UserRecord> read_user(const json::Value& secret);
std::optional<GroupRecord> read_group(const json::Value& secret);
/// The user is the name's hex, decoded.
struct TokenRecord {
  std::string user;
  Tokens tokens;
};
std::optional<TokenRecord> read_tokens(const json::Value& secret);

/// Puts the record into a Secret: a new one, or one that was read, whose other fields stay.
void write_user(const UserRecord& user, json::Value& secret);
void write_group(const GroupRecord& group, json::Value& secret);
void write_tokens(const TokenRecord& tokens, json::Value& secret);

/// The group that a virtual cluster has: of its name, with this right alone.
GroupRecord group_of_vc(const std::string& vc);
bool is_group_of_vc(const GroupRecord& group);

std::vector<std::string> strings_of(const json::Value& array);
json::Array array_of(const std::vector<std::string>& texts);
bool contains(const std::vector<std::string>& texts, std::string_view text);

/// OpenPAI's: letters, digits, "_", "." and "-". And short enough that its hex is a Secret's name.
bool good_user_name(std::string_view name);
bool good_group_name(std::string_view name);

}  // namespace muster::pai
