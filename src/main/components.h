/// The parts that run beside the API server in one process. Each sees the cluster only through a
/// client of its own, and through informers that scheduler and controllers share: every further
/// copy of the pods costs as much again for each change.
///
/// To add one: write a function that makes it from a ComponentContext and list it in components.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "apiserver/server.h"
#include "base/result.h"
#include "base/task.h"
#include "client/client.h"
#include "client/informer.h"
#include "net/loop/loop.h"

namespace muster {

struct ComponentContext {
  net::Loop& loop;
  apiserver::Server& server;     // set_pod_streams() is the agent's to call
  client::Informers& informers;  // stopped after all components
  std::string directory;         // the data folder
  std::string api_address;       // where pods and people reach the server
  std::uint16_t api_port = 0;
  std::string ca_pem;
  bool hollow = false;            // pods are only said to run
  std::string scheduler_config;   // file with Volcano's configuration or a policy of Muster's own;
                                  // empty: its defaults
  std::string hived_config;       // file with HiveD's cells; empty: none
  std::string images;             // file that maps image names to roots; empty: none
  std::int64_t pod_pids_max = 0;  // processes of a container; 0: half of what the machine can have
  Duration node_grace = std::chrono::seconds(40);  // how long a node may be silent
  std::set<std::string> without;                   // names left out: scheduler, controllers, agent
  /// An in-process client under this user name, e.g. "system:muster-scheduler".
  std::function<std::unique_ptr<client::Client>(const std::string& user)> make_client;
};

class Component {
 public:
  virtual ~Component() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  /// Returns once it works; fails with what to do.
  virtual Task<Result<void>> start() = 0;
  virtual Task<void> stop() = 0;
  /// Nothing to do until something changes.
  [[nodiscard]] virtual bool idle() const { return true; }
};

/// In start order; stopped in reverse.
std::vector<std::unique_ptr<Component>> make_components(ComponentContext& context);

}  // namespace muster
