/// The configuration of a cluster's cells lives in ConfigMap kube-system/muster-hived
/// (hived/config_map.h): `up --hived-config` writes it, and a change there reconfigures the running
/// scheduler, embedded or of `muster run`.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "client/client.h"
#include "client/events.h"
#include "client/informer.h"
#include "scheduler/scheduler.h"

namespace muster::scheduler {

/// Makes or changes the ConfigMap.
Task<Result<void>> write_cells(client::Client& client, std::string text);

/// Gives the options the cells that the cluster remembers, if any; the text of the configuration.
Task<Result<std::string>> read_cells(client::Client& client, Options& options);

class LiveCells {
 public:
  /// `text`: what the scheduler was started with. `source`: whom events name.
  LiveCells(Env& env,
            client::Client& client,
            client::Informers& informers,
            Scheduler& scheduler,
            std::string text,
            const std::string& source);
  /// After the scheduler's start.
  void start();
  Task<void> stop();

 private:
  void changed(const json::Value& map);

  client::Informers& informers_;
  Scheduler& scheduler_;
  std::string text_;  // what was looked at last
  std::unique_ptr<client::EventRecorder> events_;
  bool stopped_ = false;
};

}  // namespace muster::scheduler
