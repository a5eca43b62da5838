/// A containerd of our own that keeps images and, where runc and the plugins for networks are
/// installed, runs pods for the CRI runtime (cri/).
///
/// It is a process of its own session and outlives muster, as pods do: the next muster finds it by
/// its pid file and goes on with it. Should it end, it is started again. `end()` is for `muster
/// down`. Everything of it lies in one folder:
///
///   containerd.toml, containerd.sock, containerd.log, pid
///   certs.d/<registry>/hosts.toml   where registries of the image file are asked
///   cni/10-muster.conflist          the network of pods that it runs
///   root, opt                       containerd's own; its state, unless it runs pods
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "agent/image/image_file.h"
#include "base/result.h"
#include "base/task.h"
#include "net/loop/descriptor.h"
#include "net/loop/loop.h"

namespace muster::agent::image {

/// Containerd's namespace of what CRI pulls, imports and lists.
inline constexpr const char* kContainerdNamespace = "k8s.io";

/// Whether the program is on this machine.
bool containerd_installed();
/// What a containerd needs to run pods; nothing of it: it only keeps images.
struct PodSupport {
  std::string plugins;  // the folder of programs for networks; empty: it runs no pods
  std::string network;  // what they are told, as a list of CNI's
  std::string sandbox_image;
  std::string state;  // set by Containerd: see containerd_state.h
};
std::string containerd_config(const std::string& directory, const PodSupport& pods);
std::string hosts_file(const Registry& registry);

class Containerd {
 public:
  Containerd(net::Loop& loop, std::string directory);
  ~Containerd();

  /// Adopts the one that runs, or starts one. Does not wait until it answers.
  Result<void> start(const std::vector<Registry>& registries, PodSupport pods);
  Task<void> end();
  [[nodiscard]] std::string socket() const { return directory_ + "/containerd.sock"; }

 private:
  Result<void> write_files(const std::vector<Registry>& registries, const PodSupport& pods) const;
  Result<void> launch();
  [[nodiscard]] int running_pid() const;
  Task<void> watch(std::shared_ptr<bool> stopped);

  net::Loop& loop_;
  std::string directory_;
  int pid_ = 0;
  std::shared_ptr<net::Descriptor> process_;                       // readable once it has ended
  std::shared_ptr<bool> stopped_ = std::make_shared<bool>(false);  // outlives us in watch()
};

}  // namespace muster::agent::image
