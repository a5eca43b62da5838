#include "pai/people/directory.h"

#include <algorithm>

#include "base/strings.h"
#include "kube/meta.h"

namespace muster::pai {
namespace {

constexpr std::size_t kRemovedMax = 10'000;

std::uint64_t version_of(const json::Value& object) {
  return static_cast<std::uint64_t>(
      parse_int(json::string_at(object, "metadata", "resourceVersion")).value_or(0));
}

}  // namespace

void Directory::follow(client::Informers& informers) {
  for (const char* ns : {kUserNamespace, kGroupNamespace, kTokenNamespace}) {
    client::ListOptions where;
    where.ns = ns;
    client::Informer& informer = informers.get(client::resources::kSecrets, where);
    client::InformerHandlers handlers;
    handlers.on_change = [this](const client::ObjectPtr& old_object,
                                const client::ObjectPtr& new_object) {
      see(new_object ? *new_object : *old_object, new_object == nullptr);
    };
    informer.add_handlers(std::move(handlers));
    followed_.push_back(&informer);
  }
}

bool Directory::synced() const {
  return std::all_of(followed_.begin(), followed_.end(), [](const client::Informer* informer) {
    return informer->synced();
  });
}

void Directory::wrote(const json::Value& object) { see(object, false); }

void Directory::removed(const json::Value& object) {
  if (removed_uids_.size() >= kRemovedMax) removed_uids_.clear();
  removed_uids_.insert(std::string(kube::uid_of(object)));
  see(object, true);
}

void Directory::see(const json::Value& object, bool gone) {
  const std::string_view ns = kube::namespace_of(object);
  if (ns == kUserNamespace) {
    auto user = read_user(object);
    if (!user) return;
    const std::string name = user->name;
    gone ? take(users_, object, name) : place(users_, object, name, std::move(*user));
    tell(name);
  } else if (ns == kTokenNamespace) {
    auto tokens = read_tokens(object);
    if (!tokens) return;
    const std::string name = tokens->user;
    gone ? take(tokens_, object, name) : place(tokens_, object, name, std::move(*tokens));
    tell(name);
  } else if (ns == kGroupNamespace) {
    auto group = read_group(object);
    if (!group) return;
    const std::string name = group->name;
    gone ? take(groups_, object, name) : place(groups_, object, name, std::move(*group));
    for (const auto& each : group_told_) each();
  }
}

template <typename Record>
void Directory::place(Shelf<Record>& shelf,
                      const json::Value& object,
                      std::string name,
                      Record record) {
  const std::string uid(kube::uid_of(object));
  if (removed_uids_.contains(uid)) return;
  Kept<Record>& kept = shelf[std::move(name)];
  const std::uint64_t version = version_of(object);
  if (kept.uid == uid && kept.version > version) return;
  kept = {std::move(record), uid, version};
}

template <typename Record>
void Directory::take(Shelf<Record>& shelf, const json::Value& object, const std::string& name) {
  const auto found = shelf.find(name);
  // Another of the same name may have been made meanwhile.
  if (found != shelf.end() && found->second.uid == kube::uid_of(object)) shelf.erase(found);
}

void Directory::tell(const std::string& user) {
  for (const auto& each : told_) each(user);
}

const UserRecord* Directory::find_user(std::string_view name) const {
  const auto found = users_.find(name);
  return found == users_.end() ? nullptr : &found->second.record;
}

const GroupRecord* Directory::find_group(std::string_view name) const {
  const auto found = groups_.find(name);
  return found == groups_.end() ? nullptr : &found->second.record;
}

std::vector<const UserRecord*> Directory::users() const {
  std::vector<const UserRecord*> all;
  for (const auto& [name, kept] : users_) all.push_back(&kept.record);
  return all;
}

std::vector<const GroupRecord*> Directory::groups() const {
  std::vector<const GroupRecord*> all;
  for (const auto& [name, kept] : groups_) all.push_back(&kept.record);
  return all;
}

const Tokens& Directory::tokens_of(std::string_view user) const {
  static const Tokens kNone;
  const auto found = tokens_.find(user);
  return found == tokens_.end() ? kNone : found->second.record.tokens;
}

bool Directory::has_token(std::string_view user, std::string_view token) const {
  const Tokens& tokens = tokens_of(user);
  return std::any_of(
      tokens.begin(), tokens.end(), [token](const auto& each) { return each.second == token; });
}

bool Directory::is_admin(const UserRecord& user) const {
  return std::any_of(user.groups.begin(), user.groups.end(), [this](const std::string& name) {
    const GroupRecord* group = find_group(name);
    return group != nullptr && group->admin();
  });
}

std::vector<std::string> Directory::granted_vcs(const UserRecord& user) const {
  std::vector<std::string> vcs;
  for (const std::string& name : user.groups) {
    const GroupRecord* group = find_group(name);
    if (group == nullptr) continue;
    for (std::string& vc : group->vcs())
      if (!contains(vcs, vc)) vcs.push_back(std::move(vc));
  }
  return vcs;
}

std::vector<std::string> Directory::storages(const UserRecord& user) const {
  std::vector<std::string> all;
  for (const std::string& name : user.groups) {
    const GroupRecord* group = find_group(name);
    if (group == nullptr) continue;
    for (std::string& storage : group->storages())
      if (!contains(all, storage)) all.push_back(std::move(storage));
  }
  return all;
}

}  // namespace muster::pai
