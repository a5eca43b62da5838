/// Who may work with OpenPAI's jobs: users with passwords, their groups and tokens. REST and the
/// portal log people in here, the API server asks here whose token it was shown, and all three see
/// the same people, because all of it is Secrets of the cluster (records.h). On the loop. One piece, a table of what can
/// be asked and done: what it remembers stands in Directory, Hashing and Throttle.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/client.h"
#include "client/informer.h"
#include "net/http/http.h"
#include "pai/people/directory.h"
#include "pai/people/hashing.h"
#include "pai/people/throttle.h"
#include "pai/people/token.h"
#include "pai/refusal.h"

namespace muster::pai {

struct PeopleOptions {
  /// The virtual clusters that exist; asked whenever it matters.
  std::function<std::vector<std::string>()> virtual_clusters;
};

/// Somebody who showed a good token.
struct Caller {
  std::string user;
  bool admin = false;
  bool application = false;  // a token of a program: routes of jobs only
  std::string token;
};

class People {
 public:
  People(Env& env, client::Client& client, client::Informers& informers, PeopleOptions options);

  /// Makes namespaces, key and the groups that always exist; returns once everybody is known.
  Task<Result<void>> start();
  /// Makes the user `admin` unless there is an administrator already; true if it did.
  Task<Result<bool>> make_first_admin(std::string password);
  /// Makes what a password is held against when there is no such user; after start(), when there is
  /// time.
  Task<void> prepare_nobody();
  /// Whether there is none.
  [[nodiscard]] bool needs_admin() const;

  [[nodiscard]] const Directory& directory() const { return directory_; }
  [[nodiscard]] Directory& directory() { return directory_; }

  /// 429 with a time to wait, 503 when too many log in at once, 400 NoUserError or
  /// IncorrectPasswordError; each of the last two takes as long as a success.
  Task<Answer<void>> check_password(std::string user, std::string password, std::string address);
  /// A new token of the user's, kept in their Secret. A browser's lives for seven days.
  Task<Answer<std::string>> issue_token(std::string user, bool application);
  Task<Answer<void>> revoke_token(std::string user, std::string token);
  Task<Answer<void>> revoke_browser_tokens(std::string user);

  /// 401 without a good token: "Bearer TOKEN", or for a program's "Basic base64(USER:TOKEN)".
  [[nodiscard]] Answer<Caller> caller_of(const net::Request& request) const;
  /// Nobody for a token that is not good now.
  [[nodiscard]] std::optional<Caller> caller_of_token(std::string_view token) const;

  /// The virtual clusters that the user may use; an administrator all that exist.
  [[nodiscard]] std::vector<std::string> vcs_of(const UserRecord& user) const;
  [[nodiscard]] std::vector<std::string> existing_vcs() const {
    return options_.virtual_clusters();
  }
  [[nodiscard]] bool may_use(std::string_view user, std::string_view vc) const;
  /// "pai:GROUP" for each of their groups: how Kubernetes knows them.
  [[nodiscard]] std::vector<std::string> kubernetes_groups(const UserRecord& user) const;

  /// Writes; the Directory knows when they return.
  Task<Answer<void>> create_user(UserRecord user, std::string password);
  using UserEdit = std::function<Answer<void>(UserRecord& user)>;
  Task<Answer<void>> change_user(std::string name, UserEdit edit);
  Task<Answer<void>> set_password(std::string name, std::string password);
  Task<Answer<void>> remove_user(std::string name);
  Task<Answer<void>> create_group(GroupRecord group);
  using GroupEdit = std::function<Answer<void>(GroupRecord& group)>;
  Task<Answer<void>> change_group(std::string name, GroupEdit edit);
  /// Takes it from its members, too.
  Task<Answer<void>> remove_group(std::string name);

  /// Makes the groups of new virtual clusters and takes away those of vanished ones, with whoever's
  /// membership, and writes down what groups give (rights.h). Called when virtual clusters or groups
  /// may have changed.
  Task<Result<void>> match_groups_to_vcs();

 private:
  using SecretEdit = std::function<Answer<void>(json::Value& secret)>;
  Task<Result<void>> make_key();
  Task<Result<void>> make_namespaces();
  Task<Result<void>> make_standing_groups();
  Task<Result<void>> take_away_vcs(const std::vector<std::string>& vanished);
  Task<Answer<std::string>> hashed(std::string password);
  Task<Answer<void>> create_secret(json::Value secret);
  Task<Answer<void>> change_secret(std::string ns, std::string name, SecretEdit edit);
  Task<Answer<void>> remove_secret(std::string ns, std::string name);
  using TokenEdit = std::function<Answer<void>(Tokens& tokens)>;
  Task<Answer<void>> change_tokens(std::string user, TokenEdit edit);

  Env& env_;
  client::Client& client_;
  client::Informers& informers_;
  PeopleOptions options_;
  Directory directory_;
  Hashing hashing_;
  Throttle throttle_;
  std::string key_;     // signs tokens
  std::string nobody_;  // the hash that a password is held against when there is no such user
  bool matching_ = false, match_again_ = false;
};

/// UserInfo of OpenPAI.
json::Object user_info(const People& people, const UserRecord& user);
json::Object group_info(const GroupRecord& group);

Refusal no_user(std::string_view name, int status);
Refusal no_group(std::string_view name);

}  // namespace muster::pai
