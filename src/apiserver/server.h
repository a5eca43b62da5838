/// The embedded Kubernetes API server: a handler for requests over a store.
///
/// main/ opens the store, makes a Server, starts it, and gives its handler to net::listen and its
/// clients to the other rooms. Everything runs on the loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/audit/options.h"
#include "apiserver/rest/node_agent.h"
#include "base/prometheus.h"
#include "client/client.h"
#include "json/json.h"
#include "kube/security/pod_security.h"
#include "net/http/client.h"
#include "net/http/http.h"
#include "store/store.h"

namespace muster::apiserver {

/// Somebody whom another part of the process knows by a token.
struct TokenOwner {
  std::string name;
  std::vector<std::string> groups;
};

/// A request for the group of answers, and who asks. Their right to what is asked is looked at with
/// `may`, by whoever answers.
struct AnswersCall {
  std::string user;
  std::vector<std::string> groups;
  std::string method;
  net::Target target;
  std::string body;
  std::function<bool(std::string_view verb, std::string_view resource, std::string_view ns)> may;
};

struct ServerOptions {
  std::string ca_pem;         // published as kube-root-ca.crt
  std::string token_key_pem;  // signs service-account tokens
  std::string admin_token;    // bearer token of the kubeconfig's user; empty: none
  std::string issuer = "https://kubernetes.default.svc.cluster.local";
  /// Service-account tokens that are asked to live longer live so long; 0: as asked.
  std::int64_t token_lifetime_s_max = 0;
  std::string address = "127.0.0.1";
  /// For the kubernetes service's endpoints; set_endpoint() when known later.
  std::uint16_t port = 0;
  /// What pods may ask for in namespaces that do not say so themselves; see
  /// registry/guard_pods.h.
  kube::SecurityLevel pod_security = kube::SecurityLevel::kBaseline;
  /// Where requests are written down; nothing: nowhere.
  std::optional<audit::Options> audit;
  /// True: who uses a queue or virtual cluster needs a permission; see registry/queue_access.h.
  bool queues_closed = false;
  /// Rules of custom kinds beyond their schemas, where a cluster has validating webhooks.
  /// `old_object` is null on create.
  std::function<std::vector<Cause>(
      const json::Value& object, const json::Value* old_object, std::vector<std::string>* warnings)>
      custom_rules;
  /// Makes the client of an admission webhook; null: none can be asked.
  std::function<Result<std::unique_ptr<net::Client>>(net::ClientOptions)> dial;
  /// Whose token this is, of those that the server did not make itself; nobody's: none.
  std::function<std::optional<TokenOwner>(const std::string& token)> find_token_owner;
  /// Answers for the group of answers; null: there is no such group.
  std::function<Task<net::Response>(AnswersCall)> answers;
  /// Adds to /metrics what the other parts of the process count.
  std::function<void(prometheus::Page&)> add_metrics;
};

struct Core;

class Server {
 public:
  Server(Env& env, store::Store& store, ServerOptions options);
  ~Server();

  /// Loads the image, creates what every cluster has, starts the housekeeping.
  Task<Result<void>> start();
  /// Ends watches and housekeeping; waits for writes under way.
  Task<void> stop();
  /// The address clients reach, once the socket is bound.
  Task<void> set_endpoint(std::string address, std::uint16_t port);

  [[nodiscard]] net::Handler handler();
  /// The API for another room of this process, which is `user`.
  [[nodiscard]] std::unique_ptr<client::Client> make_client(std::string user);
  /// Who runs the pods; nothing: nobody answers for them.
  void set_node_agent(std::optional<NodeAgent> agent);

 private:
  std::unique_ptr<Core> core_;
};

}  // namespace muster::apiserver
