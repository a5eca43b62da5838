/// Services as the runtime's virtual addresses: what kube-proxy is to a node. Pure, but for
/// Services, which tells the runtime whenever something changed.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/context.h"
#include "agent/pod/pod_env.h"
#include "agent/runtime.h"

namespace muster::agent {

/// The virtual addresses of one Service: its cluster addresses and ports, leading to the ready
/// addresses of its Endpoints. Headless services and those without a cluster address have none.
std::vector<VirtualPort> virtual_ports(const json::Value& service, const json::Value& endpoints);

/// {NAME}_SERVICE_HOST and _PORT of every service of the pod's namespace, as a kubelet adds them
/// unless enableServiceLinks is false.
EnvList service_env(Context& context, const json::Value& pod);

class Services {
 public:
  /// `api`: where pods reach the API server, for the service "kubernetes"; empty: not at all.
  Services(Context& context, std::string api_address, int api_port);
  /// Something may have changed. Cheap: many changes become one update.
  void changed();
  void stop() { *alive_ = false; }

 private:
  Task<void> apply(std::shared_ptr<bool> alive);
  std::vector<VirtualPort> wanted() const;

  Context& context_;
  std::string api_address_;
  int api_port_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  bool applying_ = false;
  bool stale_ = false;
  std::vector<VirtualPort> applied_;
};

}  // namespace muster::agent
