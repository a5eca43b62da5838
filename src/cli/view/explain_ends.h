/// Parts of `explain` that tell the truth about ends: instances that crash again and again, and gangs
/// that can never start. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/view/job.h"
#include "json/json.h"

namespace muster::cli {

/// A container that ended badly, or keeps doing so.
struct Crash {
  const Instance* instance = nullptr;
  std::string container;
  std::string how;  // "exit code 255"
  std::int64_t restarts = 0;
  bool waits = false;              // to be started again: its last log is that of the one before
  std::vector<std::string> lines;  // the last of its log; filled in by who can read it
};
/// Those of the job, at most `most`.
std::vector<Crash> crashes_of(const Job& job, std::size_t most);
/// Some instance is back from a crash, or waits to be: what looks like running is not.
bool crash_loops(const Job& job);
std::string crash_part(const std::vector<Crash>& crashes);

/// What a gang needs at least, and what all nodes have when they are empty.
struct Fit {
  std::int64_t members = 0;  // that must start together
  std::int64_t fit = 0;      // of them on empty nodes
  std::int64_t gpus = 0;     // of the members that must start
  std::int64_t cluster_gpus = 0;
  std::int64_t largest_node = 0;
  std::int64_t largest_member = 0;
  [[nodiscard]] bool never() const { return fit < members; }
};
/// `min_member` 0: all. Counts GPUs alone; a gang that needs none always fits.
Fit fit_on_empty_nodes(const Job& job,
                       std::int64_t min_member,
                       const std::vector<const json::Value*>& nodes);
/// Why it can never start as things are, and what could; empty when it can.
std::string never_part(const Fit& fit);

}  // namespace muster::cli
