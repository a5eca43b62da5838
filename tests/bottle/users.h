/// Users of the cluster at the worst moments: they submit, delete, suspend, resume and store numbers
/// that must not be lost.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cells.h"
#include "checks.h"
#include "link.h"
#include "sim_env.h"

namespace muster::bottle {

class Users {
 public:
  Users(SimWorld& world, Place& place, Checks& checks, std::function<void(std::string)> tell);

  /// Makes what their jobs need.
  void prepare();
  /// One thing that somebody does, chosen by lot.
  void act();
  /// What is suspended goes on, and every node is there and takes pods.
  void mend_all();
  /// A node is deleted, comes back, or takes no more pods for a while.
  void change_node(int number);
  /// Tenants whose promises are looked at: a limit for the queue at the end as well, and jobs that
  /// only use what is left over and never end. `nodes`: of a cluster of cells; 0: it has none.
  void have_tenants(int nodes);
  /// The cells are divided anew, taken out of use for a while, or their ConfigMap is deleted.
  void change_cells(Random& random);
  void submit_filler(Random& random);
  /// How many jobs there were since the last call, at any moment of it.
  std::size_t take_jobs() { return std::exchange(jobs_since_, jobs_.size()); }
  [[nodiscard]] std::uint64_t actions() const { return actions_; }
  struct Counts {
    std::uint64_t crashing = 0, urgent = 0, suspended = 0, resized = 0, queues_changed = 0;
    std::uint64_t cells_changed = 0, fillers = 0;
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

  // What --break does.
  void take_gpus_twice();
  void want_what_is_not_there();
  void bind_in_part();
  void write_without_end();
  void run_for_ever();
  void leave_an_orphan();
  void write_now_and_then();
  void share_a_device();
  void pass_somebody();

 private:
  struct Job {
    const client::Resource* kind = nullptr;
    bool made = false;  // the server has said so
    bool suspended = false;
    bool endless = false;  // it fails again and again, until somebody deletes it
    json::Value object;
  };
  void submit_one();
  Task<void> submit(const client::Resource* kind, json::Value job);
  Task<void> remove(std::string name, Job job);
  Task<void> suspend(std::string name, bool suspended);
  Task<void> resize(std::string name, int pods);
  Task<void> set_queue();
  Task<void> set_cells();
  Task<void> bind_behind(json::Value first, json::Value second);
  Task<void> count(std::string name);
  Task<void> create(const client::Resource* kind, json::Value object);
  Task<void> set_node(int number);

  SimWorld& world_;
  SimEnv env_;
  Checks& checks_;
  std::function<void(std::string)> tell_;
  std::unique_ptr<client::Client> client_;
  std::map<std::string, Job> jobs_;
  std::map<int, std::pair<bool, bool>> nodes_;  // there, closed; as wanted
  int next_ = 0;
  std::size_t jobs_since_ = 0;
  std::pair<int, int> queue_{0, 1};  // GPUs at most, weight; as wanted
  /// As wanted.
  struct Cells {
    Split split;
    bool there = true, stopped = false;
    bool operator==(const Cells&) const = default;
  };
  Cells cells_;
  bool tenants_ = false;
  int fillers_ = 0;
  std::uint64_t actions_ = 0;
  Counts counts_;
};

}  // namespace muster::bottle
