/// Volumes by the in-tree rules: a pod goes where its bound volumes are; claims that wait for their
/// first consumer are told the node through the selected-node annotation (or, for volumes made by
/// hand, get one of that node) and are waited for before the pod is bound; anything else that is
/// unbound is a reason to wait. Binding and provisioning themselves stay with the cluster's own
/// controllers.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/env.h"
#include "client/client.h"
#include "client/informer.h"
#include "engine/model/model.h"

namespace muster::scheduler {

class Volumes {
 public:
  /// `changed` is called with the pods whose volumes may look different now.
  Volumes(Env& env,
          client::Client& client,
          client::Informers& informers,
          std::function<void(const std::set<std::string>& pods)> changed);

  /// Kinds to be in step before the first decision.
  static std::vector<client::Resource> kinds();
  /// Narrows the pod to where its volumes are. Not empty: why it cannot be placed yet, in
  /// kube-scheduler's words.
  std::string constrain(engine::Pod& pod, const json::Value& object);
  /// Whether the pod uses any claim at all.
  static bool concern(const json::Value& pod) { return !claims_of(pod).empty(); }
  void forget(const std::string& pod) { pods_.erase(pod); }
  /// The claims of a pod that goes to `node` are told so, or are given volumes of that node.
  /// Answers with the names of those that are not bound yet.
  Task<Result<std::vector<std::string>>> choose(client::ObjectPtr pod, std::string node);
  /// Until these claims are bound, which takes a provisioner minutes at times, or `wanted` says no.
  /// Fails when one of them is gone, when the provisioner gives the node back, and after
  /// kube-scheduler's ten minutes.
  Task<Result<void>> bound(std::string ns,
                           std::vector<std::string> claims,
                           std::string node,
                           std::function<bool()> wanted);
  /// Those who wait in bound() ask again at once whether they are wanted.
  void look_again() { moved_->notify(); }

 private:
  struct Claim {
    std::string name;
    bool ephemeral = false;
  };
  static std::vector<Claim> claims_of(const json::Value& pod);
  static bool is_bound(const json::Value& claim);
  [[nodiscard]] std::string constrain_delayed(engine::Pod& pod,
                                              const json::Value& claim,
                                              const json::Value& storage_class) const;
  [[nodiscard]] std::vector<client::ObjectPtr> candidates(const json::Value& claim) const;
  Task<Result<void>> choose_for(const json::Value& claim, const std::string& node);

  Env& env_;
  client::Client& client_;
  client::Informer* claims_;
  client::Informer* volumes_;
  client::Informer* classes_;
  client::Informer* nodes_;
  std::set<std::string> pods_;  // unbound, with claims
  std::shared_ptr<Signal> moved_;
};

}  // namespace muster::scheduler
