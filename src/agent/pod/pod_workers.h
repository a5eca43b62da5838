/// The workers of all pods that run here: one for each, from the first news of the pod until it is gone
/// from this machine and from the API.
///
/// Pods that an earlier agent left running are adopted: first the runtime says what runs, then the API
/// says whose it is, and what is nobody's is stopped. On the loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/pod/pod_worker.h"

namespace muster::agent {

class PodWorkers {
 public:
  /// `on_gone` is called when a pod is gone. The context outlives this.
  PodWorkers(Context& context, std::function<void()> on_gone)
      : context_(context), on_gone_(std::move(on_gone)) {}

  /// What the runtime still runs, before any pod is heard of.
  void adopt(std::vector<SandboxStatus> found);
  [[nodiscard]] std::size_t adopted() const { return adopted_.size(); }
  void update(const client::ObjectPtr& pod);
  /// The object is gone.
  void removed(const std::string& uid);
  void on_event(const RuntimeEvent& event);
  /// A ConfigMap or Secret changed.
  void object_changed(const std::string& kind, const json::Value& object);
  /// Once every pod was heard of: pods that were deleted, or directories that stayed, while no agent
  /// ran.
  Task<void> remove_orphans();
  /// Writes what is known of them and not written yet: an agent that ends in order takes it along.
  Task<void> settle(Duration limit);
  /// Lets go of them; what runs goes on. Their uids.
  std::vector<std::string> detach_all();

  /// Null: none.
  [[nodiscard]] std::shared_ptr<PodWorker> find(const std::string& uid) const;
  [[nodiscard]] std::vector<std::shared_ptr<PodWorker>> all() const;

 private:
  Context& context_;
  std::function<void()> on_gone_;
  std::map<std::string, std::shared_ptr<PodWorker>> workers_;  // by pod uid
  std::map<std::string, SandboxStatus> adopted_;  // not yet claimed by a pod of the API
};

/// A sandbox that was found running, after something has happened to it: until the API says whose it
/// is, which may take as long as its server is away, nobody else hears of it.
void apply(const RuntimeEvent& event, Time now, SandboxStatus& found);

}  // namespace muster::agent
