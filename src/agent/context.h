/// What every part of the agent shares. Made by Agent; outlives workers.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "agent/image/image_file.h"
#include "agent/node/devices.h"
#include "agent/node/gpu_ledger.h"
#include "agent/runtime.h"
#include "agent/slots.h"
#include "client/client.h"
#include "client/events.h"
#include "client/informer.h"
#include "net/loop/loop.h"

namespace muster::agent {

namespace image {
class Source;
}

struct Context {
  Env& loop;
  client::Client& client;
  client::Informers& informers;
  Runtime& runtime;
  std::string directory;  // of the agent; pods live in <directory>/pods/<uid>
  std::string host_ip;
  std::string api_host;  // how pods reach the API; empty: not told
  int api_port = 0;
  std::int64_t node_cpu_milli = 0;
  std::int64_t node_memory_bytes = 0;
  ImageFile images;
  bool has_cri = false;      // pods may be a container runtime's
  bool prefers_cri = false;  // and are, unless they ask for something else
  bool foreign_cri = false;  // it was there before us, with handlers of its own
  /// Null: every image that the file does not name runs on this machine's own files.
  image::Source* image_source = nullptr;
  GpuLedger gpus;
  /// This machine's real GPUs by index, where pods see only their own.
  std::map<int, Gpu> machine_gpus;
  std::vector<std::string> cdi_folders;
  std::set<std::string> said;  // what the log says once
  std::string hidden;          // the data folder, links resolved: no pod sees it
  /// Processes and threads a container may have; 0: as many as the machine.
  std::int64_t pids_max = 0;
  std::function<client::EventRecorder&(const std::string& node)> events_of;
  /// What sockets live on: ports, probes, streams. Null: there are none, as in a simulation.
  net::Loop* sockets = nullptr;
  /// Pods that are on their way to their first published status; events wait for them.
  int starting = 0;
  /// Pods being started. A start is work for processors: more at once would make none sooner, and
  /// would make sandboxes for all where those of pods that end meanwhile can be used again.
  Slots start_slots{loop, 4 * static_cast<int>(std::max(1U, std::thread::hardware_concurrency()))};
  /// Removals of what pods had on disk: they wait for the disk, and starts need workers, too.
  Slots removal_slots{loop, 1};
  /// Status writes under way. What else happens to a pod while its write waits goes with it: in a
  /// burst a short pod is written once, as Succeeded, and not for each thing that happened to it.
  Slots status_slots{loop, 16};
  std::function<std::string(const json::Value& pod)> resolv_conf;
  /// Until network policies hold for every pod that has an address. Null: there are none.
  std::function<Task<Result<void>>()> in_force;
};

}  // namespace muster::agent
