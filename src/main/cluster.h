/// A whole cluster in this process: the store, the API server on its sockets, and beside it the
/// scheduler, the job controllers and the node agent. Each of these sees the cluster only through a
/// client of its own, and through informers that scheduler and controllers share: every further copy
/// of the pods costs as much again for each change.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "apiserver/audit/options.h"
#include "apiserver/pki/identity.h"
#include "apiserver/server.h"
#include "base/result.h"
#include "base/task.h"
#include "client/client.h"
#include "client/informer.h"
#include "controllers/controllers.h"
#include "kube/security/pod_security.h"
#include "main/answers.h"
#include "main/data_dir.h"
#include "main/portal_people.h"
#include "net/http/server.h"
#include "net/loop/loop.h"
#include "pai/service.h"
#include "portal/portal.h"
#include "scheduler/service.h"
#include "store/store.h"

namespace muster {

struct ClusterOptions {
  std::string data;              // the data folder, absolute
  std::string address;           // where the API is served
  std::uint16_t port = 0;        // 0: any
  std::string nodes;             // a number, or a file of Node objects; empty: as they are
  std::optional<int> gpus;       // of each virtual node; absent: the machine's own
  std::string kubeconfig;        // where to write one besides; empty: nowhere
  bool hollow = false;           // pods are only said to run
  std::string scheduler_config;  // see scheduler::ServiceOptions; empty: none
  std::string hived_config;      // likewise
  std::string images;            // what image names mean here (agent/image/image_file.h); or none
  std::string image_source;      // see agent::AgentOptions
  std::string runtime;           // likewise
  int image_pulls_max = 3;       // at a time
  std::vector<std::string> cdi_folders;
  std::int64_t pod_pids_max = 0;  // processes of a container; 0: half of what the machine can have
  bool map_pod_users = true;      // root of a pod is nobody on this machine
  kube::SecurityLevel pod_security = kube::SecurityLevel::kBaseline;  // where none is set
  std::optional<apiserver::audit::Options> audit;  // where requests are written down
  std::string encryption_key_file;                 // keys of Secrets at rest; empty: none
  bool queues_closed = false;                      // who uses a queue needs a permission
  Duration node_grace = std::chrono::seconds(40);  // how long a node may be silent
  Duration token_lifetime_max{};                   // of service accounts' tokens; zero: as asked
  std::string pai_rest;             // where OpenPAI's REST API has a port of its own; empty: none
  bool pai_layout = false;          // it was made of OpenPAI's installation files
  std::string admin_password_file;  // of the first administrator; empty: one is made up
  std::optional<portal::Listening> portal;  // absent: none
  AnswersOptions answers;                   // records of jobs
  std::set<std::string> without;            // scheduler, controllers, agent
};

class Cluster {
 public:
  /// Holds the folder's lock for as long as it lives.
  Cluster(net::Loop& loop, ClusterOptions options, const DataLock& lock);
  ~Cluster();

  /// Returns once everything works and the kubeconfig is written; fails with what to do.
  Task<Result<void>> start();
  Task<void> stop();

  [[nodiscard]] std::string address() const;
  [[nodiscard]] std::size_t node_count() const { return node_count_; }
  /// Null without OpenPAI's API.
  [[nodiscard]] const pai::Service* pai() const { return pai_.get(); }
  /// The first administrator's, when this start made it up.
  [[nodiscard]] const std::string& first_password() const { return first_password_; }
  /// Null without a portal.
  [[nodiscard]] const portal::Portal* portal() const { return portal_.get(); }

 private:
  [[nodiscard]] bool has(const char* part) const { return !options_.without.contains(part); }
  /// Where pods and people of this machine reach the server.
  [[nodiscard]] std::string reachable() const;
  [[nodiscard]] std::string socket_path() const { return options_.data + "/api.sock"; }
  /// An in-process client under this user name, e.g. "system:muster-scheduler".
  std::unique_ptr<client::Client> make_client(const std::string& user);

  Result<std::optional<std::vector<json::Value>>> planned_nodes();
  Task<Result<void>> start_server(const apiserver::Identity& identity);
  Result<void> listen(const apiserver::Identity& identity);
  void listen_beside();
  net::Handler handler();
  Task<net::Response> answer(apiserver::AnswersCall call);
  Task<void> tell_idle(net::ResponseWriter& writer);
  Task<Result<void>> make_nodes(std::optional<std::vector<json::Value>> nodes);
  [[nodiscard]] std::string policy_file() const;
  Task<Result<void>> start_scheduler();
  Task<void> start_controllers();
  Task<Result<void>> start_agent();
  Task<Result<void>> start_pai();
  Task<Result<pai::Service*>> pai_for_portal();
  Result<void> make_first_password();
  [[nodiscard]] std::optional<apiserver::TokenOwner> token_owner(const std::string& token) const;
  Result<void> start_portal(const apiserver::Identity& identity);
  Result<void> publish(const apiserver::Identity& identity);

  net::Loop& loop_;
  ClusterOptions options_;
  const DataLock& lock_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<apiserver::Server> server_;
  // By TLS, and without it on a Unix socket.
  std::unique_ptr<net::Server> socket_, beside_;
  // Started in this order, stopped in reverse; each has its client before it.
  std::unique_ptr<client::Client> watching_;
  std::unique_ptr<client::Informers> informers_;
  std::unique_ptr<client::Client> answers_client_;
  std::unique_ptr<Answers> answers_;
  std::unique_ptr<client::Client> scheduler_client_;
  std::unique_ptr<scheduler::Service> scheduler_;
  std::unique_ptr<client::Client> controllers_client_;
  std::unique_ptr<controllers::Controllers> controllers_;
  std::unique_ptr<client::Client> agent_client_;
  std::unique_ptr<agent::Agent> agent_;
  std::unique_ptr<client::Client> pai_client_;
  std::unique_ptr<pai::Service> pai_;
  std::unique_ptr<client::Client> portal_client_;
  std::unique_ptr<PortalPeople> portal_people_;
  std::unique_ptr<portal::Portal> portal_;
  std::string first_password_;
  std::size_t node_count_ = 0;
};

}  // namespace muster
