/// The plan carried out: bindings, evictions and nominations are posted, and what was posted is
/// remembered until the watch shows it, so that an older picture of a pod undoes nothing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/gate.h"
#include "engine/model/model.h"
#include "engine/model/plan.h"
#include "scheduler/context.h"
#include "scheduler/counters.h"
#include "scheduler/volumes.h"

namespace muster::scheduler {

/// Merges `patch` into the pod, status alone; nobody reads the answer.
Task<Result<void>> patch_pod_status(client::Client& client, std::string pod, json::Value patch);

class Hands {
 public:
  /// What is done about a pod when the API server has answered.
  struct Answers {
    std::function<void(const std::string& pod)> bound, bind_failed, evict_failed;
    /// Some time after a failure.
    std::function<void(const std::string& pod)> may_try_again, may_evict_again;
  };
  struct Options {
    std::string scheduler;       // as victims' conditions name it
    Volumes* volumes = nullptr;  // null: they are not looked at
    Counters* counters = nullptr;
    std::function<bool()> leads;  // as in the scheduler's options
    Answers answers;
  };
  Hands(const Context& context, Options options)
      : context_(context), options_(std::move(options)), awaiting_volumes_(context.env) {}

  /// `annotations` reach the pod with the binding.
  void bind(const engine::Bind& bind, json::Object annotations = {});
  void evict(const engine::Evict& evict);
  void nominate(const engine::Nominate& nominate);

  /// Whether the server has left open what became of a binding.
  [[nodiscard]] bool in_doubt() const { return !doubted_.empty(); }
  /// Bound by us, whether or not the watch has shown it.
  [[nodiscard]] bool binds(const std::string& pod) const { return assumed_.contains(pod); }
  /// Whether the pod's change is our own binding coming back and nothing else. It is settled then.
  bool came_back(const std::string& pod, const json::Value& before, const json::Value& after);
  /// The watch shows the pod on a node.
  void seen_bound(const std::string& pod);
  void gone(const std::string& pod);
  /// Adds to the picture of a pod what was done and is not in it yet.
  void complete(engine::Pod& pod) const;
  /// Why the pod is held back after a failed binding; empty while that may be a trifle. Null: it is
  /// not held back.
  [[nodiscard]] const std::string* held_because(const std::string& pod) const;

  void stop();
  /// Pods whose bindings wait for volumes. They hold no place in a lane: a slow provisioner keeps
  /// nobody else waiting.
  [[nodiscard]] const Gate& awaiting_volumes() const { return awaiting_volumes_; }
  Task<bool> wait_for_volumes() { return awaiting_volumes_.wait_empty(Duration::zero()); }

 private:
  struct Order {
    engine::Bind bind;
    json::Object annotations;
    Duration since;
    int doubts = 0;  // answers that left open whether the pod is bound
  };
  Task<void> bind_with_volumes(std::shared_ptr<Order> order,
                               client::ObjectPtr pod,
                               std::function<void()> ended);
  void post(std::shared_ptr<Order> order, std::function<void()> ended);
  Task<void> post_ended(std::shared_ptr<Order> order, Result<void> done);
  /// Posts it once more, later: an answer that tells is wanted.
  void post_again(std::shared_ptr<Order> order, const Error& error);
  void bind_ended(const Order& order, const Result<void>& done);
  /// Whether this very pod, and not another one of its name, still stands where the order puts it.
  [[nodiscard]] bool stands(const engine::Bind& bind) const;
  Task<void> do_evict(engine::Evict evict);
  [[nodiscard]] bool leads() const { return !options_.leads || options_.leads(); }

  Context context_;
  Options options_;
  bool stopped_ = false;
  Gate awaiting_volumes_;

  struct Assumed {
    std::string uid;
    std::string node;
    std::vector<std::int32_t> devices;
  };
  /// An entry lives until the watch shows the binding or the binding failed. One that is in doubt
  /// keeps its place: what may be taken is not free.
  std::map<std::string, Assumed> assumed_;
  std::map<std::string, std::unique_ptr<Timer>> doubted_;  // to be posted again
  std::map<std::string, std::string> evicting_;            // pod -> uid
  std::map<std::string, int> bind_failures_, evict_failures_;
  struct Held {
    std::unique_ptr<Timer> timer;
    std::string why;
  };
  std::map<std::string, Held> held_;  // after a failed binding
  /// After a failed eviction: others are taken instead, if there are any.
  std::map<std::string, std::unique_ptr<Timer>> spared_;
};

}  // namespace muster::scheduler
