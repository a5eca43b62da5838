/// Writes a pod's status whenever it differs from what the API has: one write at a time, and what
/// happens meanwhile goes with the next.
#pragma once

#include <memory>
#include <string>

#include "agent/pod/pod_life.h"

namespace muster::agent {

class PodStatusWriter {
 public:
  explicit PodStatusWriter(PodLife& life);

  /// The worker begins: until its first status is written, the pod counts as one that is starting.
  void begin();
  /// Its first status is written, or will be long in coming.
  void no_longer_starting();
  /// The worker waits for something: what is not being written now starts nothing.
  void rest();

  void publish();
  /// Returns when what there is to say is written, or cannot be for a while.
  Task<void> flush();
  /// The same, until a moment of the monotonic clock.
  Task<void> write_until(Duration deadline);

 private:
  Task<void> patch(std::shared_ptr<void> keep);

  PodLife& life_;
  std::string scheme_;       // what goes before the ids of its containers
  json::Value published_;    // the status as last written (or read)
  const bool was_terminal_;  // already so when first seen: the published status stays as it is
  bool patching_ = false;
  int failures_ = 0;       // of the write that is due, in a row
  bool starting_ = false;  // counted in Context::starting
  bool changed_ = false;   // since the status was last computed
  std::unique_ptr<Signal> patched_;
};

}  // namespace muster::agent
