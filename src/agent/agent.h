/// The node agent: what a kubelet is to Kubernetes, for the virtual nodes of one machine.
///
/// It takes care of every Node that carries the label muster.dev/virtual=true or the annotation
/// muster.dev/hollow=true: pods bound to the first kind run here through the Runtime, pods of
/// hollow nodes only seem to. Sees the cluster through the client alone. Everything runs on the
/// loop.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/node/metrics.h"
#include "agent/streams/streams.h"
#include "base/result.h"
#include "client/client.h"
#include "net/loop/loop.h"

namespace muster::agent {

struct AgentOptions {
  std::string directory;    // state; made when absent
  std::string hidden;       // the data folder: no pod sees it; empty: none
  std::string shim_binary;  // empty: this program
  std::string images_file;  // see image/image_file.h; empty: none
  /// Where images come from: none, containerd, unix:///…; empty: as the image file says, else none.
  std::string image_source;
  std::string image_directory;  // of the containerd that we start
  /// process: pods are processes of ours; cri: they are a container runtime's, unless their class
  /// says otherwise.
  std::string runtime = "process";
  std::string archives;  // archives in this folder are imported at start
  int parallel_pulls_max = 3;
  std::vector<std::string> cdi_folders;  // descriptions of devices: node/cdi.h
  std::string api_address;               // where the API server listens
  int api_port = 0;
  bool hollow = false;  // every node is
  /// Processes and threads of a container; 0: half of what the machine can have, so that no pod
  /// takes the rest from all others.
  std::int64_t pids_max = 0;
  bool isolate = true;    // false: no namespaces even as root
  bool map_users = true;  // root of a pod is nobody on this machine
};

class Agent {
 public:
  virtual ~Agent() = default;
  /// Adopts what an earlier agent left running; returns once pods are followed.
  virtual Task<Result<void>> start() = 0;
  /// `remove_pods`: stop everything and leave no trace on the machine (pods stay in the API and run
  /// again at the next start); else pods go on without an agent until the next one adopts them.
  virtual Task<void> stop(bool remove_pods) = 0;

  /// Logs, exec, attach and port-forward of pods on this agent's nodes.
  virtual PodStreamServer& streams() = 0;
  /// What a container of a pod that is gone wrote, the last `bytes_max` of it; nothing if that was not
  /// kept (streams/former_logs.h).
  virtual Task<std::optional<std::string>> former_log(std::string pod_uid,
                                                      std::string container,
                                                      std::size_t bytes_max) = 0;
  virtual Metrics& metrics() = 0;
  /// Network policies are in force.
  [[nodiscard]] virtual bool filters_traffic() const = 0;
  /// What this machine lacks, one line each; empty: nothing.
  [[nodiscard]] virtual std::vector<std::string> shortcomings() const = 0;
};

std::unique_ptr<Agent> make_agent(net::Loop& loop, client::Client& client, AgentOptions options);

}  // namespace muster::agent
