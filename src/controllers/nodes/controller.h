/// Watches over nodes: one whose lease is no longer renewed becomes Unknown and tainted, and pods
/// leave tainted nodes when their tolerations end. A node that never had a lease is nobody's to
/// miss (hollow nodes, and those made by hand).
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/env.h"
#include "client/client.h"
#include "client/events.h"
#include "client/informer.h"

namespace muster::controllers::nodes {

class Controller {
 public:
  /// `grace`: how long a lease may stay as it is; kube-controller-manager's
  /// --node-monitor-grace-period.
  Controller(Env& env, client::Client& client, client::Informers& informers, Duration grace);
  void start();
  Task<void> stop();

 private:
  struct Heartbeat {
    std::string renewed;  // as the lease says it
    Duration seen;        // when it was first seen so, by our own clock
  };
  void lease_changed(const client::ObjectPtr& lease);
  Task<void> run();
  Task<void> look(std::string name);
  Task<void> mark_pods_not_ready(std::string node);
  Task<void> evict(client::ObjectPtr pod);

  Env& env_;
  client::Client& client_;
  client::Informer& nodes_;
  client::Informer& pods_;
  client::Informer& leases_;
  const Duration grace_;
  std::map<std::string, Heartbeat> heartbeats_;  // by node
  std::set<std::string> changed_;                // nodes to look at
  std::set<std::string> tainted_;                // nodes that some pods must leave
  std::unique_ptr<client::EventRecorder> events_;
  std::unique_ptr<Signal> wake_, ended_;
  bool running_ = false, stopping_ = false;
};

}  // namespace muster::controllers::nodes
