/// Answers DNS queries of pods for services and pods, straight from what the informers know: a name
/// follows a change as soon as the agent has seen it, and costs nothing while nobody asks.
///
///   <service>.<namespace>.svc.cluster.local          its cluster address; headless (or without
///                                                    address translation): its ready endpoints
///   <pod or hostname>.<service>.<namespace>.svc…     that pod's address, ready or not
///   <pod>.<namespace>.svc.cluster.local              the pod's address, where no service has
///                                                    the name
///
/// Other names are asked of this machine's own name server.
#pragma once

#include <netinet/in.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/context.h"
#include "net/loop/descriptor.h"

namespace muster::agent {

/// nullopt: no such name. Empty: the name exists, but has no address now.
using ResolveName = std::function<std::optional<std::vector<std::string>>(const std::string& name)>;
/// One query, one answer; empty when the query is not worth one. `name`s are lower case, without
/// the last dot. Pure.
std::string answer_query(std::string_view query, const ResolveName& resolve);
/// A query for a name that this machine's name server may know. Pure.
bool asks_elsewhere(std::string_view query);

/// From the informers, for names without ".cluster.local".
std::optional<std::vector<std::string>> resolve_cluster_name(Context& context,
                                                             const std::string& name,
                                                             const std::string& api_address);

/// Passes queries on to another server and its answers back. At most 65,536 are under way; the
/// oldest is forgotten for the next. A server that has been silent for two seconds is still asked,
/// but not waited for: a resolver's own patience is ten seconds a name.
class DnsForwarder {
 public:
  DnsForwarder(net::Loop& loop, int reply_socket) : loop_(loop), reply_socket_(reply_socket) {}
  ~DnsForwarder();
  /// The first server of a resolv.conf's text. False: there is none that can be asked.
  bool start(const std::string& machine_resolv_conf);
  /// False: the answer is better not waited for.
  bool ask(std::string_view query, const sockaddr_in& peer);

 private:
  struct Asked {
    sockaddr_in peer;
    char id[2];
  };
  struct Traffic {
    std::map<std::uint16_t, Asked> asked;
    Duration silent_since{0};  // the first question since the last answer; zero: none
  };
  static Task<void> relay(std::shared_ptr<net::Descriptor> upstream,
                          std::shared_ptr<Traffic> traffic,
                          int reply_socket);
  net::Loop& loop_;
  int reply_socket_;
  std::uint16_t next_ = 0;
  std::shared_ptr<net::Descriptor> upstream_;
  std::shared_ptr<Traffic> traffic_ = std::make_shared<Traffic>();
};

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
  std::unique_ptr<DnsForwarder> forwarder_;  // null: this machine has no name server
};

/// /etc/resolv.conf by the pod's dnsPolicy and dnsConfig. `nameserver` is ours (empty: none),
/// `machine` this machine's own file. Pure.
std::string resolv_conf(const json::Value& pod,
                        const std::string& nameserver,
                        const std::string& machine);

}  // namespace muster::agent
