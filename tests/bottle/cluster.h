/// A cluster in the bottle: the objects of `muster up`, wired as src/main/cluster.cc wires them, in
/// one simulated process, or apart: the API server with its store, scheduler and controllers as
/// `muster run` has them, and the agent, each in a process of its own that dies alone. Apart, there may be two `muster run` that elect a leader.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/hollow/hollow_pods.h"
#include "client/informer.h"
#include "client/leader.h"
#include "controllers/controllers.h"
#include "disk.h"
#include "link.h"
#include "pod_agent.h"
#include "scheduler/service.h"
#include "sim_env.h"
#include "store/store.h"

namespace muster::bottle {

enum class Part { kServer, kWork, kAgent, kStandby };
inline constexpr Part kParts[] = {Part::kServer, Part::kWork, Part::kAgent, Part::kStandby};
std::string_view name_of(Part part);

/// The API server on its store.
struct ServerPart {
  std::unique_ptr<store::Store> store;
  std::unique_ptr<apiserver::Server> server;
  std::unique_ptr<client::Client> direct;  // for whoever looks on
};

/// Scheduler and controllers.
struct WorkPart {
  std::unique_ptr<client::Client> watching, scheduling, controlling;
  std::unique_ptr<client::Informers> informers;
  std::unique_ptr<scheduler::Service> scheduler;
  std::unique_ptr<controllers::Controllers> controllers;
  std::unique_ptr<client::LeaderElector> elector;  // null: it is the only one
};

/// What follows hollow pods, or those of a machine.
struct AgentPart {
  std::unique_ptr<client::Client> client;
  std::unique_ptr<client::Informers> informers;
  std::unique_ptr<agent::HollowPods> pods;
  std::unique_ptr<PodAgent> agent;
};

/// node-0, node-1, …
json::Value make_node(int number, int gpus);

struct ClusterOptions {
  bool apart = false;
  bool elected = false;  // apart: two that elect a leader
  int nodes = 3;
  int gpus = 4;
  Machine* machine = nullptr;  // where pods run; null: they are hollow
  scheduler::Config policy;
  /// In the server's process, each time it has started.
  std::function<Task<void>(SimEnv&, ServerPart&)> on_served;
  std::function<void(std::string)> tell;
};

class Cluster {
 public:
  Cluster(SimWorld& world, Disk& disk, ClusterOptions options);

  /// Starts each part that does not run.
  void start();
  /// kill -9; `power`: of the machine that the server's disk is in. All of it unless apart.
  void crash(Part part, bool power);
  /// The wall clock of a part's process is off by so much from now on.
  void set_clock(Part part, Duration offset) {
    if (runs(part)) parts_[index(part)]->env.set_clock(offset);
  }
  /// The part's process does nothing for so long, and then all that it would have done.
  void stop_for(Part part, Duration span) {
    if (runs(part)) parts_[index(part)]->env.stop_for(span);
  }
  /// Schedulers decide by it from now on, those that are started later as well.
  void set_policy(const scheduler::Config& policy);
  [[nodiscard]] bool runs(Part part) const { return parts_[index(part)] != nullptr; }
  [[nodiscard]] bool serves() const { return place_.server() != nullptr; }
  Place& place() { return place_; }
  /// Null while none is started.
  ServerPart* server() { return parts_[0] ? &parts_[0]->server : nullptr; }

 private:
  /// One process; never destroyed, as a dead one's coroutines are nowhere and everywhere.
  struct Process {
    explicit Process(SimWorld& world) : env(world) {}
    SimEnv env;
    ServerPart server;
    WorkPart work;
    AgentPart agent;
  };
  static std::size_t index(Part part) { return static_cast<std::size_t>(part); }
  Process* begin(Part part);
  std::unique_ptr<client::Client> client_for(Process& process, const std::string& user);
  Task<void> run_server(Process& process);
  Task<void> run_work(Process& process);
  /// Waits for the lease first, and ends when it is lost.
  void stand_by(Process& process);
  Task<void> run_agent(Process& process);
  Task<void> run_all(Process& process);
  Task<void> make_nodes(client::Client& client);
  /// A part that cannot start ends, and is started again.
  void give_up(Process& process, const std::string& why);

  SimWorld& world_;
  Disk& disk_;
  ClusterOptions options_;
  Place place_;
  int replicas_ = 0;
  Process* parts_[std::size(kParts)] = {};
};

}  // namespace muster::bottle
