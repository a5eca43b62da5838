/// What must hold whatever happened, checked against everything that a client could have seen.
///
/// Each check has a name; `bottle --break NAME` does what it forbids, and it must say so.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "client/client.h"
#include "cluster.h"
#include "promises.h"

namespace muster::bottle {

struct Violation {
  std::string check;
  std::string what;
};

class Checks {
 public:
  /// `promising`: what queues and cells promise is looked at, too.
  Checks(SimWorld& world, int gpus, bool promising)
      : world_(world), gpus_(gpus), promising_(promising) {}

  [[nodiscard]] const std::optional<Violation>& violation() const { return violation_; }
  /// Each change of a pod, in a line.
  void tell_pods(std::function<void(std::string)> tell) { tell_pods_ = std::move(tell); }
  void fail(std::string check, std::string what);

  /// A server that has started again: what is there now is compared with what was seen, and then
  /// followed.
  Task<void> follow(SimEnv& env, ServerPart& server);

  // What users know. A register is a ConfigMap with a number that only grows.
  void acknowledged(const std::string& name, std::int64_t number);
  void deletion_acknowledged(const std::string& uid) { deleted_.insert(uid); }

  // What --break does: as if a client had seen it.
  void forget_bindings() {
    for (auto& [uid, node] : bound_) node = "another";
  }
  void see_revision(std::uint64_t revision) { highest_ = std::max(highest_, revision); }

  /// Every virtual minute.
  void minute(store::Revision revision, std::size_t jobs);
  /// What goes on although nothing should: the object that was written last.
  Task<void> not_quiet(client::Client& client, std::uint64_t writes);
  /// Nothing goes on any more, and nothing has been broken for a long time.
  Task<void> at_rest(client::Client& client);

  Promises& promises() { return promises_; }
  [[nodiscard]] std::uint64_t seen() const { return seen_; }
  /// Renewals of leases: the only writes of a cluster at rest.
  [[nodiscard]] std::uint64_t renewals() const { return renewals_; }

 private:
  struct Pod {
    std::string name, node;
    int gpus = 0;
    bool ended = false;
  };
  using Objects = std::map<std::string, json::Value>;  // by uid
  Task<void> watch_pods(SimEnv& env, client::Client& direct);
  Task<void> watch_leases(SimEnv& env, client::Client& direct);
  Task<void> watch_groups(SimEnv& env, client::Client& direct);
  void see_pod(const json::Value& pod, bool gone);
  void check_owners(const Objects& objects);
  void check_gangs(const Objects& objects);
  void check_ends(const Objects& objects);

  SimWorld& world_;
  const int gpus_;
  const bool promising_;
  std::optional<Violation> violation_;
  std::function<void(std::string)> tell_pods_;
  Promises promises_{
      [this](std::string check, std::string what) { fail(std::move(check), std::move(what)); }};
  std::uint64_t seen_ = 0;
  std::uint64_t renewals_ = 0;
  std::map<std::string, Pod> pods_;                // by uid, those that are there
  std::map<std::string, std::string> bound_;       // uid -> node, for ever
  std::map<std::string, int> used_;                // node -> GPUs
  std::map<std::string, std::int64_t> registers_;  // acknowledged
  std::set<std::string> deleted_;                  // uids that are gone for good
  std::uint64_t highest_ = 0;                      // revision ever seen
  store::Revision minute_ago_ = 0;
  Time written_at_{};  // when minute_ago_ was seen
};

/// "" while it goes on; else how it ended.
std::string end_of(const json::Value& job);

}  // namespace muster::bottle
