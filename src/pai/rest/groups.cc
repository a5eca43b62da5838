/// Groups: what they give their members.
#include <fmt/core.h>

#include "pai/people/records.h"
#include "pai/rest/body.h"
#include "pai/rest/routes.h"

namespace muster::pai::rest {
namespace {

struct Wish {
  std::string name;
  std::optional<std::string> description, external_name;
  std::optional<json::Object> extension;
};

Answer<Wish> read_wish(const json::Value& body) {
  Members members(body);
  Wish wish;
  wish.name = members.text("groupname");
  wish.description = members.maybe_text("description");
  wish.external_name = members.maybe_text("externalName");
  wish.extension = members.maybe_object("extension");
  if (!good_group_name(wish.name))
    members.complain("\"groupname\" must be 1 to 126 letters, digits, \"_\", \".\" and \"-\"");
  const auto read = members.done();
  if (!read) return refuse(read.error());
  return wish;
}

Task<Answer<Reply>> list(People& people) {
  json::Array groups;
  for (const GroupRecord* group : people.directory().groups()) groups.push_back(group_info(*group));
  co_return answered(std::move(groups));
}

Task<Answer<Reply>> show(People& people, Call& call) {
  const GroupRecord* group = people.directory().find_group(call.values[0]);
  if (group == nullptr) co_return refuse(no_group(call.values[0]));
  co_return answered(group_info(*group));
}

Task<Answer<Reply>> members_of(People& people, Call& call) {
  if (people.directory().find_group(call.values[0]) == nullptr)
    co_return refuse(no_group(call.values[0]));
  json::Array users;
  for (const UserRecord* user : people.directory().users())
    if (contains(user->groups, call.values[0]))
      users.push_back(json::Object{{"username", user->name}, {"email", user->email}});
  co_return answered(std::move(users));
}

Task<Answer<Reply>> create(People& people, Call& call) {
  auto wish = read_wish(call.body);
  if (!wish) co_return refuse(wish.error());
  GroupRecord group;
  group.name = wish->name;
  group.description = wish->description.value_or("");
  group.external_name = wish->external_name.value_or("");
  group.extension = wish->extension.value_or(json::Object{});
  const auto made = co_await people.create_group(std::move(group));
  if (!made) co_return refuse(made.error());
  co_return said(201, "group is created successfully");
}

/// {data, patch}, or the group itself as OpenPAI's SDK may send it.
Task<Answer<Reply>> update(People& people, Call& call) {
  const bool wrapped = json::at(call.body, "data").is_object();
  const auto wish = read_wish(wrapped ? json::at(call.body, "data") : call.body);
  if (!wish) co_return refuse(wish.error());
  const bool patch = !wrapped || json::bool_at(call.body, "patch");
  if (!patch && (!wish->description || !wish->external_name || !wish->extension))
    co_return refuse(bad_parameters(
        "\"description\", \"externalName\" and \"extension\" are required without \"patch\""));
  if (wish->name == kAdminGroup && wish->extension &&
      !json::bool_at(json::Value(*wish->extension), "acls", "admin"))
    co_return refuse(
        403, "ForbiddenUserError", "Group admingroup must remain the administrators' group.");
  const auto changed =
      co_await people.change_group(wish->name, [&](GroupRecord& group) -> Answer<void> {
        if (wish->description) group.description = *wish->description;
        if (wish->external_name) group.external_name = *wish->external_name;
        if (wish->extension && !patch) group.extension = {};
        if (wish->extension)
          for (const auto& each : *wish->extension) group.extension[each.key()] = each.value();
        return {};
      });
  if (!changed) co_return refuse(changed.error());
  co_return said(201, fmt::format("update group {} successfully.", wish->name));
}

Task<Answer<Reply>> remove(People& people, Call& call) {
  const auto removed = co_await people.remove_group(call.values[0]);
  if (!removed) co_return refuse(removed.error());
  co_return said(200, "group is removed successfully");
}

}  // namespace

std::vector<Route> group_routes(People& people) {
  const auto with = [&people](Task<Answer<Reply>> (*run)(People&, Call&)) -> Run {
    return [&people, run](Call& call) { return run(people, call); };
  };
  return {
      {"GET", "groups", Who::kUser, [&people](Call&) { return list(people); }},
      {"POST", "groups", Who::kAdmin, with(create)},
      {"PUT", "groups", Who::kAdmin, with(update)},
      {"GET", "groups/:group", Who::kUser, with(show)},
      {"DELETE", "groups/:group", Who::kAdmin, with(remove)},
      {"GET", "groups/:group/userlist", Who::kUser, with(members_of)},
  };
}

}  // namespace muster::pai::rest
