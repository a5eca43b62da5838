/// What queues and cells promise, checked against every pod and group that a client could have seen:
/// limits are kept, no device is given out twice, and nobody who asks for as much starts before those
/// of the same queue who came first and wait.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/time.h"
#include "json/json.h"

namespace muster::bottle {

/// What the pod's containers may have together.
int gpus_of(const json::Value& pod);

class Promises {
 public:
  /// `fail` is told the check and what is wrong.
  explicit Promises(std::function<void(std::string, std::string)> fail) : fail_(std::move(fail)) {}

  /// A server has started again: all that is there is said once more.
  void begin_again();
  void see_pod(const json::Value& pod, bool gone, Time now);
  /// Now and then: what was decided together is done by now.
  void look_again(Time now);
  void see_group(const json::Value& group, bool gone);
  /// The pods of this tenant ("queue team", "virtual cluster team") that are placed after `since`
  /// have no more GPUs than that together.
  void limit(const std::string& tenant, int gpus, Time since) { limits_[tenant] = {gpus, since}; }
  void no_limit(const std::string& tenant) { limits_.erase(tenant); }
  /// How often each was looked at when it could have been broken.
  struct Counts {
    std::uint64_t limits = 0, starts = 0;
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  struct Pod {
    std::string name, node, group, virtual_cluster, created;
    std::vector<std::string> devices;  // their numbers on its node
    int gpus = 0;
    std::int64_t priority = 0;
    bool ended = false;
    bool has_room = false;
    Time seen, placed;  // when it was first seen, and when with a node
  };
  struct Group {
    std::string queue, created;
    std::size_t members = 1;
  };
  /// A group's pods, or one that has no group.
  struct Gang {
    std::string name, queue, created;
    std::int64_t priority = 0;
    std::size_t members = 1, placed = 0, ended = 0;
    std::vector<int> gpus;  // of each live pod, largest first
    bool has_room = false;  // others were told to leave for it
    Time since;             // since when all of them are there
  };

  [[nodiscard]] std::string queue_of(const Pod& pod) const;
  [[nodiscard]] static std::string key_of(const std::string& uid, const Pod& pod);
  [[nodiscard]] std::map<std::string, Gang> gangs() const;
  /// A pod has just got its node.
  void check_limit(const Pod& last, const std::string& tenant, bool of_queue);
  void check_devices(const Pod& last);
  void check_order(const std::string& uid, const Pod& last, Time now);
  [[nodiscard]] static bool is_whole(const Gang& gang) {
    return gang.gpus.size() >= gang.members && gang.ended == 0;
  }

  std::function<void(std::string, std::string)> fail_;
  std::map<std::string, Pod> pods_, before_;  // by uid; before_: when the server went
  std::map<std::string, Group> groups_;       // by name
  std::map<std::string, std::pair<int, Time>> limits_;
  /// Who waits, by key, though another one has started: at the next look it has, too.
  struct Passed {
    std::string what;
    Time when;
  };
  std::map<std::string, Passed> passed_;
  Counts counts_;
};

}  // namespace muster::bottle
