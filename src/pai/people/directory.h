/// Everybody the cluster knows, in memory: users, groups and good tokens, as the Secrets say. Fed by
/// informers and, so that whoever wrote something reads it back, by whoever writes. On the loop.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "client/informer.h"
#include "pai/people/records.h"

namespace muster::pai {

class Directory {
 public:
  /// Follows the three namespaces.
  void follow(client::Informers& informers);
  [[nodiscard]] bool synced() const;

  [[nodiscard]] const UserRecord* find_user(std::string_view name) const;
  [[nodiscard]] const GroupRecord* find_group(std::string_view name) const;
  /// By name.
  [[nodiscard]] std::vector<const UserRecord*> users() const;
  [[nodiscard]] std::vector<const GroupRecord*> groups() const;
  /// The tokens of one user, by id; expired ones included.
  [[nodiscard]] const Tokens& tokens_of(std::string_view user) const;
  [[nodiscard]] bool has_token(std::string_view user, std::string_view token) const;

  /// Member of a group that says so.
  [[nodiscard]] bool is_admin(const UserRecord& user) const;
  /// The virtual clusters and storages that the user's groups give; an administrator may use others
  /// besides.
  [[nodiscard]] std::vector<std::string> granted_vcs(const UserRecord& user) const;
  [[nodiscard]] std::vector<std::string> storages(const UserRecord& user) const;

  /// `object` is what the server answered to a write.
  void wrote(const json::Value& object);
  void removed(const json::Value& object);

  /// Called after anything about the user changed: password, groups, tokens, or that they are gone.
  void on_change(std::function<void(const std::string& user)> told) {
    told_.push_back(std::move(told));
  }
  /// Called after a group changed.
  void on_group_change(std::function<void()> told) { group_told_.push_back(std::move(told)); }

 private:
  template <typename Record>
  struct Kept {
    Record record;
    std::string uid;
    std::uint64_t version = 0;
  };
  template <typename Record>
  using Shelf = std::map<std::string, Kept<Record>, std::less<>>;

  void see(const json::Value& object, bool gone);
  template <typename Record>
  void place(Shelf<Record>& shelf, const json::Value& object, std::string name, Record record);
  template <typename Record>
  void take(Shelf<Record>& shelf, const json::Value& object, const std::string& name);
  void tell(const std::string& user);

  Shelf<UserRecord> users_;
  Shelf<GroupRecord> groups_;
  Shelf<TokenRecord> tokens_;
  /// Secrets that we removed: an event from before must not bring them back. Bounded.
  std::set<std::string, std::less<>> removed_uids_;
  std::vector<client::Informer*> followed_;
  std::vector<std::function<void(const std::string&)>> told_;
  std::vector<std::function<void()>> group_told_;
};

}  // namespace muster::pai
