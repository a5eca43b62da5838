/// The agent of seeds whose pods really have a life: the workers of src/agent/pod on a simulated
/// machine. What an agent has beside them (network, streams, metrics, the node's own status) needs
/// sockets and is not here.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "agent/pod/pod_workers.h"
#include "client/events.h"
#include "client/informer.h"
#include "machine.h"

namespace muster::bottle {

class PodAgent {
 public:
  PodAgent(SimEnv& env, client::Client& client, Machine& machine);
  /// Adopts what an earlier one left running; returns once pods are followed.
  Task<void> start();

 private:
  void follow();
  [[nodiscard]] Machine::Program program_of(const std::string& pod_key,
                                            const std::string& container) const;

  SimEnv& env_;
  client::Client& client_;
  client::Informers informers_;
  SimRuntime runtime_;
  SimImages images_;
  std::map<std::string, std::unique_ptr<client::EventRecorder>> recorders_;  // by node
  agent::Context context_;
  agent::PodWorkers workers_;
};

}  // namespace muster::bottle
