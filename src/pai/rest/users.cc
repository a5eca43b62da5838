/// Users: who there is, and making, changing and removing them.
#include <fmt/core.h>

#include <algorithm>

#include "pai/people/password.h"
#include "pai/people/records.h"
#include "pai/rest/body.h"
#include "pai/rest/routes.h"

namespace muster::pai::rest {
namespace {

/// What a request wants to be changed; absent: as it is.
struct Wish {
  std::optional<std::string> email, password;
  std::optional<std::vector<std::string>> vcs;
  std::optional<bool> admin;
  std::optional<json::Object> extension;
  bool merge_extension = true;
};

Answer<void> check_password_text(const std::optional<std::string>& password) {
  if (password && (password->size() < kPasswordMin || password->size() > kPasswordMax))
    return refuse(bad_parameters(
        fmt::format("\"password\" length must be at least {} characters long and at most {}",
                    kPasswordMin,
                    kPasswordMax)));
  return {};
}

/// The groups that give these virtual clusters.
Answer<std::vector<std::string>> groups_of_vcs(const People& people,
                                               const std::vector<std::string>& vcs,
                                               const std::vector<std::string>& existing) {
  std::vector<std::string> groups;
  for (const std::string& vc : vcs) {
    if (!contains(existing, vc))
      return refuse(400, "NoVirtualClusterError", fmt::format("Try to update nonexist: {}", vc));
    if (people.directory().find_group(vc) == nullptr)
      return refuse(404, "NoGroupError", fmt::format("No groups for vc: {}", vc));
    groups.push_back(vc);
  }
  return groups;
}

/// The groups of virtual clusters are replaced, others stay.
void set_vcs(const People& people, UserRecord& user, const std::vector<std::string>& groups) {
  std::erase_if(user.groups, [&](const std::string& name) {
    const GroupRecord* group = people.directory().find_group(name);
    return group != nullptr && is_group_of_vc(*group);
  });
  for (const std::string& group : groups)
    if (!contains(user.groups, group)) user.groups.push_back(group);
  if (!contains(user.groups, kDefaultGroup)) user.groups.emplace_back(kDefaultGroup);
}

Answer<void> set_admin(const People& people, UserRecord& user, bool admin) {
  const bool is = people.directory().is_admin(user);
  if (admin && !is) user.groups.emplace_back(kAdminGroup);
  if (admin || !is) return {};
  const auto users = people.directory().users();
  const auto others = std::count_if(users.begin(), users.end(), [&](const UserRecord* other) {
    return other->name != user.name && people.directory().is_admin(*other);
  });
  if (others == 0)
    return refuse(
        403, "ForbiddenUserError", fmt::format("User {} is the only administrator.", user.name));
  std::erase_if(user.groups, [&](const std::string& name) {
    const GroupRecord* group = people.directory().find_group(name);
    return group != nullptr && group->admin();
  });
  return {};
}

void set_extension(UserRecord& user, const json::Object& extension, bool merge) {
  if (!merge) user.extension = {};
  for (const auto& each : extension) user.extension[each.key()] = each.value();
}

Task<Answer<void>> change(People& people, std::string name, Wish wish) {
  const auto password = check_password_text(wish.password);
  if (!password) co_return refuse(password.error());
  const UserRecord* known = people.directory().find_user(name);
  if (known == nullptr) co_return refuse(no_user(name, 404));
  std::vector<std::string> groups;
  if (wish.vcs) {
    auto found = groups_of_vcs(people, *wish.vcs, people.existing_vcs());
    if (!found) co_return refuse(found.error());
    groups = std::move(*found);
  }
  auto changed = co_await people.change_user(name, [&](UserRecord& user) -> Answer<void> {
    if (wish.email) user.email = *wish.email;
    if (wish.extension) set_extension(user, *wish.extension, wish.merge_extension);
    if (wish.admin) {
      const auto set = set_admin(people, user, *wish.admin);
      if (!set) return set;
    }
    // An administrator has every virtual cluster, whatever their list says.
    if (wish.vcs && !people.directory().is_admin(user)) set_vcs(people, user, groups);
    return {};
  });
  if (changed && wish.password) {
    changed = co_await people.set_password(name, *wish.password);
  }
  co_return changed;
}

/// People keep tokens of other services in their extension: it is theirs and the administrators'.
json::Object shown_to(const People& people, const Caller& caller, const UserRecord& user) {
  json::Object info = user_info(people, user);
  if (!caller.admin && caller.user != user.name) info["extension"] = json::Object{};
  return info;
}

Task<Answer<Reply>> list(People& people, Call& call) {
  json::Array users;
  for (const UserRecord* user : people.directory().users())
    users.push_back(shown_to(people, call.caller, *user));
  co_return answered(std::move(users));
}

Task<Answer<Reply>> show(People& people, Call& call) {
  const UserRecord* user = people.directory().find_user(call.values[0]);
  if (user == nullptr) co_return refuse(no_user(call.values[0], 400));
  co_return answered(shown_to(people, call.caller, *user));
}

Task<Answer<Reply>> create(People& people, Call& call) {
  Members members(call.body);
  UserRecord user;
  user.name = members.text("username");
  const std::string password = members.text("password");
  user.email = members.maybe_text("email").value_or("");
  const bool admin = members.maybe_bool("admin").value_or(false);
  const auto vcs = members.maybe_texts("virtualCluster").value_or(std::vector<std::string>{});
  user.extension = members.maybe_object("extension").value_or(json::Object{});
  if (!good_user_name(user.name))
    members.complain("\"username\" must be 1 to 126 letters, digits, \"_\", \".\" and \"-\"");
  const auto read = members.done();
  if (!read) co_return refuse(read.error());
  const auto checked = check_password_text(password);
  if (!checked) co_return refuse(checked.error());
  const auto groups = groups_of_vcs(people, vcs, people.existing_vcs());
  if (!groups) co_return refuse(groups.error());
  set_vcs(people, user, *groups);
  if (admin) user.groups.emplace_back(kAdminGroup);
  const auto made = co_await people.create_user(std::move(user), password);
  if (!made) co_return refuse(made.error());
  co_return said(201, "User is created successfully");
}

/// The body of a change: {data, patch}.
struct Change {
  json::Value data;
  bool patch = false;
};

Answer<Change> read_change(const json::Value& body) {
  Members outer(body);
  Change change;
  change.patch = outer.maybe_bool("patch").value_or(false);
  const auto data = outer.maybe_object("data");
  if (!data) outer.complain("\"data\" is required");
  const auto shaped = outer.done();
  if (!shaped) return refuse(shaped.error());
  change.data = *data;
  return change;
}

/// PUT /users. Without patch everything has to be said.
Task<Answer<Reply>> update(People& people, Call& call) {
  const auto asked = read_change(call.body);
  if (!asked) co_return refuse(asked.error());
  const bool patch = asked->patch;
  Members members(asked->data);
  const std::string name = members.text("username");
  Wish wish;
  wish.email = members.maybe_text("email");
  wish.vcs = members.maybe_texts("virtualCluster");
  wish.admin = members.maybe_bool("admin");
  wish.password = members.maybe_text("password");
  wish.extension = members.maybe_object("extension");
  wish.merge_extension = patch;
  if (!patch) {
    if (!wish.email) members.complain("\"email\" is required");
    if (!wish.vcs) members.complain("\"virtualCluster\" is required");
    if (!wish.admin) members.complain("\"admin\" is required");
    if (!wish.password) members.complain("\"password\" is required");
    if (!wish.extension) members.complain("\"extension\" is required");
  }
  const auto read = members.done();
  if (!read) co_return refuse(read.error());
  const auto changed = co_await change(people, name, std::move(wish));
  if (!changed) co_return refuse(changed.error());
  co_return said(201, fmt::format("Update user {} successfully", name));
}

Task<Answer<void>> change_own_password(People& people,
                                       Call& call,
                                       const std::string& old_password,
                                       const std::string& new_password) {
  const auto right =
      co_await people.check_password(call.caller.user, old_password, call.request.peer.address);
  if (!right && right.error().code == "IncorrectPasswordError")
    co_return refuse(403, "ForbiddenUserError", "Pls input the correct password.");
  if (!right) co_return refuse(right.error());
  auto set = co_await people.set_password(call.caller.user, new_password);
  co_return set;
}

Task<Answer<Reply>> update_me(People& people, Call& call) {
  const auto asked = read_change(call.body);
  if (!asked) co_return refuse(asked.error());
  const bool patch = asked->patch;
  Members members(asked->data);
  const std::string name = members.text("username");
  Wish wish;
  wish.email = members.maybe_text("email");
  wish.extension = members.maybe_object("extension");
  wish.merge_extension = patch;
  const auto old_password = members.maybe_text("oldPassword");
  const auto new_password = members.maybe_text("newPassword");
  if (new_password && !old_password) members.complain("\"oldPassword\" is required");
  const auto read = members.done();
  if (!read) co_return refuse(read.error());
  if (name != call.caller.user)
    co_return refuse(403, "ForbiddenUserError", "Not allowed to update other users' profile.");
  const auto checked = check_password_text(new_password);
  if (!checked) co_return refuse(checked.error());
  if (new_password) {
    const auto set = co_await change_own_password(people, call, *old_password, *new_password);
    if (!set) co_return refuse(set.error());
  }
  const auto changed = co_await change(people, name, std::move(wish));
  if (!changed) co_return refuse(changed.error());
  co_return said(201, fmt::format("Update user {} successfully", name));
}

Task<Answer<Reply>> remove(People& people, Call& call) {
  const std::string& name = call.values[0];
  const UserRecord* user = people.directory().find_user(name);
  if (user == nullptr) co_return refuse(no_user(name, 404));
  if (people.directory().is_admin(*user))
    co_return refuse(
        403, "RemoveAdminError", fmt::format("Admin {} is not allowed to remove.", name));
  const auto removed = co_await people.remove_user(name);
  if (!removed) co_return refuse(removed.error());
  co_return said(200, "user is removed successfully");
}

// Groups of one user.

Task<Answer<Reply>> set_groups(People& people, Call& call) {
  Members members(call.body);
  auto groups = members.maybe_texts("grouplist");
  if (!groups) members.complain("\"grouplist\" is required");
  const auto read = members.done();
  if (!read) co_return refuse(read.error());
  for (const std::string& group : *groups)
    if (people.directory().find_group(group) == nullptr) co_return refuse(no_group(group));
  if (!contains(*groups, kDefaultGroup)) groups->emplace_back(kDefaultGroup);
  const auto changed =
      co_await people.change_user(call.values[0], [&](UserRecord& user) -> Answer<void> {
        UserRecord next = user;
        next.groups = *groups;
        if (people.directory().is_admin(user) && !people.directory().is_admin(next)) {
          const auto may = set_admin(people, user, false);
          if (!may) return may;
        }
        user.groups = *groups;
        return {};
      });
  if (!changed) co_return refuse(changed.error());
  co_return said(201, "update user grouplist successfully.");
}

Task<Answer<Reply>> add_group(People& people, Call& call) {
  Members members(call.body);
  const std::string group = members.text("groupname");
  const auto read = members.done();
  if (!read) co_return refuse(read.error());
  if (people.directory().find_group(group) == nullptr) co_return refuse(no_group(group));
  const auto changed =
      co_await people.change_user(call.values[0], [&](UserRecord& user) -> Answer<void> {
        if (!contains(user.groups, group)) user.groups.push_back(group);
        return {};
      });
  if (!changed) co_return refuse(changed.error());
  co_return said(201, fmt::format("User {} is added into group {}", call.values[0], group));
}

Task<Answer<Reply>> leave_group(People& people, Call& call) {
  Members members(call.body);
  const std::string name = members.text("groupname");
  const auto read = members.done();
  if (!read) co_return refuse(read.error());
  const GroupRecord* group = people.directory().find_group(name);
  const bool admins = group != nullptr && group->admin();
  if (name == kDefaultGroup)
    co_return refuse(403,
                     "ForbiddenUserError",
                     "Every user is in group default; users cannot be removed from it.");
  const auto changed =
      co_await people.change_user(call.values[0], [&](UserRecord& user) -> Answer<void> {
        UserRecord next = user;
        std::erase(next.groups, name);
        if (admins && !people.directory().is_admin(next)) {
          const auto may = set_admin(people, user, false);
          if (!may) return may;
        }
        user.groups = next.groups;
        return {};
      });
  if (!changed) co_return refuse(changed.error());
  co_return said(201, fmt::format("User {} is removed from group {}", call.values[0], name));
}

// The older routes, one field each.

Task<Answer<Reply>> set_field(People& people, Call& call, std::string field) {
  const std::string& name = call.values[0];
  const bool self = call.caller.user == name;
  if (!call.caller.admin && !(self && (field == "email" || field == "extension")))
    co_return refuse(not_admin());
  Members members(call.body);
  Wish wish;
  if (field == "email") wish.email = members.text("email");
  if (field == "extension") wish.extension = members.maybe_object("extension");
  if (field == "virtualCluster") wish.vcs = members.maybe_texts("virtualCluster");
  if (field == "admin") wish.admin = members.maybe_bool("admin");
  if (!wish.email && !wish.extension && !wish.vcs && !wish.admin)
    members.complain(fmt::format("\"{}\" is required", field));
  const auto read = members.done();
  if (!read) co_return refuse(read.error());
  const UserRecord* user = people.directory().find_user(name);
  if (wish.vcs && user != nullptr && people.directory().is_admin(*user))
    co_return refuse(403, "ForbiddenUserError", "Admin's virtual clusters cannot be updated.");
  const auto changed = co_await change(people, name, std::move(wish));
  if (!changed) co_return refuse(changed.error());
  co_return said(201, fmt::format("Update user {} data successfully.", field));
}

Task<Answer<Reply>> set_password(People& people, Call& call) {
  const std::string& name = call.values[0];
  Members members(call.body);
  const std::string new_password = members.text("newPassword");
  const std::string old_password = members.maybe_text("oldPassword").value_or("");
  const auto read = members.done();
  if (!read) co_return refuse(read.error());
  const auto checked = check_password_text(new_password);
  if (!checked) co_return refuse(checked.error());
  if (people.directory().find_user(name) == nullptr) co_return refuse(no_user(name, 404));
  if (!call.caller.admin && call.caller.user != name) co_return refuse(not_admin());
  if (call.caller.admin) {
    const auto set = co_await people.set_password(name, new_password);
    if (!set) co_return refuse(set.error());
  } else {
    const auto set = co_await change_own_password(people, call, old_password, new_password);
    if (!set) co_return refuse(set.error());
  }
  co_return said(201, "update user password successfully.");
}

}  // namespace

std::vector<Route> user_routes(People& people) {
  const auto with = [&people](Task<Answer<Reply>> (*run)(People&, Call&)) -> Run {
    return [&people, run](Call& call) { return run(people, call); };
  };
  std::vector<Route> routes;
  // "user" is how version 1 spells it.
  for (const std::string base : {"users", "user"}) {
    routes.push_back({"GET", base, Who::kUser, with(list)});
    routes.push_back({"POST", base, Who::kAdmin, with(create)});
    routes.push_back({"PUT", base, Who::kAdmin, with(update)});
    routes.push_back({"PUT", base + "/me", Who::kUser, with(update_me)});
    routes.push_back({"GET", base + "/:user", Who::kUser, with(show)});
    routes.push_back({"DELETE", base + "/:user", Who::kAdmin, with(remove)});
    routes.push_back({"PUT", base + "/:user/group", Who::kAdmin, with(add_group)});
    routes.push_back({"DELETE", base + "/:user/group", Who::kAdmin, with(leave_group)});
    routes.push_back({"PUT", base + "/:user/grouplist", Who::kAdmin, with(set_groups)});
    routes.push_back({"PUT", base + "/:user/password", Who::kUser, with(set_password)});
    for (const auto& [path, field] : {std::pair{"email", "email"},
                                      std::pair{"extension", "extension"},
                                      std::pair{"virtualcluster", "virtualCluster"},
                                      std::pair{"admin", "admin"}})
      routes.push_back({"PUT",
                        base + "/:user/" + path,
                        Who::kUser,
                        [&people, name = std::string(field)](Call& call) {
                          return set_field(people, call, name);
                        }});
  }
  return routes;
}

}  // namespace muster::pai::rest
