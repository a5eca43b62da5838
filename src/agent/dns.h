/// Answers DNS queries of pods for services and pods, straight from what the informers know: a name
/// follows a change as soon as the agent has seen it, and costs nothing while nobody asks.
///
///   <service>.<namespace>.svc.cluster.local          addresses of its ready endpoints
///   <pod or hostname>.<service>.<namespace>.svc…     that pod's address, ready or not
///   <pod>.<namespace>.svc.cluster.local              the pod's address, where no service has the
///   name kubernetes.default.svc.cluster.local             this machine, as pods reach it
///
/// Names outside cluster.local are refused, so that a resolver goes on to its next server.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/context.h"
#include "net/descriptor.h"

namespace muster::agent {

/// nullopt: no such name. Empty: the name exists, but has no address now.
using ResolveName = std::function<std::optional<std::vector<std::string>>(const std::string& name)>;
/// One query, one answer; empty when the query is not worth one. `name`s are lower case, without
/// the last dot. Pure.
std::string answer_query(std::string_view query, const ResolveName& resolve);

/// From the informers, for names without ".cluster.local".
std::optional<std::vector<std::string>> resolve_cluster_name(Context& context,
                                                             const std::string& name,
                                                             const std::string& api_address);

class Dns {
 public:
  Dns(Context& context, std::string address) : context_(context), address_(std::move(address)) {}
  /// Port 53 of the address, UDP.
  Result<void> start();
  void stop();

 private:
  Task<void> serve(std::shared_ptr<net::Descriptor> socket);
  Context& context_;
  std::string address_;
  std::shared_ptr<net::Descriptor> socket_;
};

/// nameserver, search and options for pods of a namespace; `machine` is this machine's own
/// resolv.conf.
std::string resolv_conf(const std::string& nameserver,
                        const std::string& ns,
                        const std::string& machine);

}  // namespace muster::agent
