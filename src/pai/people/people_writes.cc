/// How People changes what is kept: each change is read, edited and written back with the version it
/// was read at, and made again when somebody else was faster.
#include <fmt/core.h>

#include <algorithm>

#include "base/log.h"
#include "kube/meta.h"
#include "pai/people/hex.h"
#include "pai/people/password.h"
#include "pai/people/people.h"
#include "pai/people/rights.h"

namespace muster::pai {
namespace {

using client::resources::kSecrets;
constexpr int kWriteTries = 8;

}  // namespace

Task<Answer<void>> People::create_secret(json::Value secret) {
  const std::string ns(kube::namespace_of(secret));
  const auto made = co_await client_.create(kSecrets, ns, std::move(secret));
  if (!made) co_return refuse(made.error());
  directory_.wrote(*made);
  co_return Answer<void>();
}

Task<Answer<void>> People::change_secret(std::string ns, std::string name, SecretEdit edit) {
  for (int i = 0;; ++i) {
    auto secret = co_await client_.get(kSecrets, ns, name);
    if (!secret) co_return refuse(secret.error());
    const auto edited = edit(*secret);
    if (!edited) co_return refuse(edited.error());
    const auto written = co_await client_.update(kSecrets, std::move(*secret));
    if (written) {
      directory_.wrote(*written);
      co_return Answer<void>();
    }
    if (written.error().code != Code::kConflict || i + 1 >= kWriteTries)
      co_return refuse(written.error());
  }
}

Task<Answer<void>> People::remove_secret(std::string ns, std::string name) {
  const auto secret = co_await client_.get(kSecrets, ns, name);
  if (!secret) co_return refuse(secret.error());
  client::DeleteOptions how;
  how.uid = std::string(kube::uid_of(*secret));
  const auto removed = co_await client_.remove(kSecrets, ns, name, how);
  if (!removed) co_return refuse(removed.error());
  directory_.removed(*secret);
  co_return Answer<void>();
}

Task<Answer<void>> People::create_user(UserRecord user, std::string password) {
  if (directory_.find_user(user.name) != nullptr)
    co_return refuse(
        409, "ConflictUserError", fmt::format("User name {} already exists.", user.name));
  auto hash = co_await hashed(std::move(password));
  if (!hash) co_return refuse(hash.error());
  user.password = std::move(*hash);
  json::Value secret;
  write_user(user, secret);
  auto made = co_await create_secret(std::move(secret));
  if (!made && made.error().status == 409)
    co_return refuse(
        409, "ConflictUserError", fmt::format("User name {} already exists.", user.name));
  co_return made;
}

Task<Answer<void>> People::change_user(std::string name, UserEdit edit) {
  auto changed = co_await change_secret(
      kUserNamespace, hex(name), [&edit, &name](json::Value& secret) -> Answer<void> {
        auto user = read_user(secret);
        if (!user) return refuse(no_user(name, 404));
        const auto edited = edit(*user);
        if (!edited) return refuse(edited.error());
        write_user(*user, secret);
        return {};
      });
  if (!changed && changed.error().status == 404) co_return refuse(no_user(name, 404));
  co_return changed;
}

Task<Answer<void>> People::set_password(std::string name, std::string password) {
  auto hash = co_await hashed(std::move(password));
  if (!hash) co_return refuse(hash.error());
  auto changed = co_await change_user(name, [&](UserRecord& user) -> Answer<void> {
    user.password = *hash;
    return {};
  });
  if (!changed) co_return changed;
  throttle_.forget(name);
  auto revoked = co_await revoke_browser_tokens(std::move(name));
  co_return revoked;
}

Task<Answer<void>> People::remove_user(std::string name) {
  auto removed = co_await remove_secret(kUserNamespace, hex(name));
  if (!removed && removed.error().status == 404) co_return refuse(no_user(name, 404));
  if (!removed) co_return removed;
  // Without their user tokens count for nothing; but somebody of the same name may come later.
  auto tokens = co_await remove_secret(kTokenNamespace, hex(name));
  if (!tokens && tokens.error().status != 404) co_return tokens;
  co_return Answer<void>();
}

Task<Answer<void>> People::create_group(GroupRecord group) {
  json::Value secret;
  write_group(group, secret);
  auto made = co_await create_secret(std::move(secret));
  if (!made && made.error().status == 409)
    co_return refuse(
        409, "ConflictUserError", fmt::format("Group name {} already exists.", group.name));
  co_return made;
}

Task<Answer<void>> People::change_group(std::string name, GroupEdit edit) {
  auto changed = co_await change_secret(
      kGroupNamespace, hex(name), [&edit, &name](json::Value& secret) -> Answer<void> {
        auto group = read_group(secret);
        if (!group) return refuse(no_group(name));
        const auto edited = edit(*group);
        if (!edited) return refuse(edited.error());
        write_group(*group, secret);
        return {};
      });
  if (!changed && changed.error().status == 404) co_return refuse(no_group(name));
  co_return changed;
}

Task<Answer<void>> People::remove_group(std::string name) {
  if (name == kDefaultGroup || name == kAdminGroup)
    co_return refuse(403,
                     "ForbiddenUserError",
                     fmt::format("Group {} always exists and cannot be removed.", name));
  auto removed = co_await remove_secret(kGroupNamespace, hex(name));
  if (!removed && removed.error().status == 404) co_return refuse(no_group(name));
  if (!removed) co_return removed;
  std::vector<std::string> members;
  for (const UserRecord* user : directory_.users())
    if (contains(user->groups, name)) members.push_back(user->name);
  for (const std::string& member : members) {
    auto changed = co_await change_user(member, [&name](UserRecord& user) -> Answer<void> {
      std::erase(user.groups, name);
      return {};
    });
    if (!changed && changed.error().status != 404) co_return changed;
  }
  co_return Answer<void>();
}

Task<Answer<void>> People::change_tokens(std::string user, TokenEdit edit) {
  const auto edit_secret = [&](json::Value& secret) -> Answer<void> {
    auto record = read_tokens(secret);
    if (!record) record = TokenRecord{user, {}};
    const auto edited = edit(record->tokens);
    if (!edited) return refuse(edited.error());
    write_tokens(*record, secret);
    return {};
  };
  for (int i = 0;; ++i) {
    auto changed = co_await change_secret(kTokenNamespace, hex(user), edit_secret);
    if (changed || changed.error().status != 404) co_return changed;
    json::Value secret;
    write_tokens({user, {}}, secret);
    const auto edited = edit_secret(secret);
    if (!edited) co_return edited;
    auto made = co_await create_secret(std::move(secret));
    // Two first logins at once: the second finds the first one's Secret.
    if (made || made.error().status != 409 || i + 1 >= kWriteTries) co_return made;
  }
}

Task<Result<void>> People::match_groups_to_vcs() {
  // One at a time; whoever asks meanwhile is served by one more round.
  match_again_ = true;
  if (matching_) co_return Result<void>();
  matching_ = true;
  Result<void> outcome;
  while (match_again_ && outcome) {
    match_again_ = false;
    const auto vcs = options_.virtual_clusters();
    for (const std::string& vc : vcs) {
      if (directory_.find_group(vc) != nullptr || !good_group_name(vc)) continue;
      const auto made = co_await create_group(group_of_vc(vc));
      if (!made && made.error().status != 409)
        outcome = fail(Code::kInternal, made.error().message);
    }
    std::vector<std::string> vanished;
    for (const GroupRecord* group : directory_.groups())
      if (is_group_of_vc(*group) && !contains(vcs, group->name)) vanished.push_back(group->name);
    const auto taken = co_await take_away_vcs(vanished);
    if (!taken) outcome = taken;
    const auto written = co_await write_rights(client_, directory_, vcs);
    if (!written) outcome = written;
  }
  matching_ = false;
  co_return outcome;
}

Task<Result<void>> People::take_away_vcs(const std::vector<std::string>& vanished) {
  for (const std::string& vc : vanished) {
    const auto removed = co_await remove_group(vc);
    if (!removed && removed.error().status != 404)
      co_return fail(Code::kInternal, removed.error().message);
    log::info("pai", "virtual cluster {} is gone, and with it its group", vc);
  }
  if (vanished.empty()) co_return Result<void>();
  std::vector<std::string> naming;
  for (const GroupRecord* group : directory_.groups()) {
    const auto vcs = group->vcs();
    if (group->name != kDefaultGroup &&
        std::any_of(
            vcs.begin(), vcs.end(), [&](const std::string& vc) { return contains(vanished, vc); }))
      naming.push_back(group->name);
  }
  for (const std::string& name : naming) {
    const auto changed = co_await change_group(name, [&](GroupRecord& group) -> Answer<void> {
      auto vcs = group.vcs();
      std::erase_if(vcs, [&](const std::string& vc) { return contains(vanished, vc); });
      json::Value extension(group.extension);
      json::make_object(extension, {"acls"})["virtualClusters"] = array_of(vcs);
      group.extension = extension.as_object();
      return {};
    });
    if (!changed && changed.error().status != 404)
      co_return fail(Code::kInternal, changed.error().message);
  }
  co_return Result<void>();
}

}  // namespace muster::pai
