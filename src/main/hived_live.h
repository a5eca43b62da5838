/// The cells' configuration of a cluster lives in ConfigMap kube-system/muster-hived: `up
/// --hived-config` writes it, and who changes it there changes the cells of the running scheduler,
/// embedded or of `muster run`.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "client/client.h"
#include "client/events.h"
#include "client/informer.h"
#include "scheduler/scheduler.h"

namespace muster {

inline constexpr const char* kHivedNamespace = "kube-system";
inline constexpr const char* kHivedConfigMap = "muster-hived";
inline constexpr const char* kHivedKey = "hivedscheduler.yaml";

/// The text in the ConfigMap; nothing when there is none.
Task<Result<std::optional<std::string>>> read_hived_config_map(client::Client& client);
/// Makes or changes the ConfigMap.
Task<Result<void>> write_hived_config_map(client::Client& client, std::string text);

/// Gives the options the cells that the cluster remembers, if any; the text of the configuration.
Task<Result<std::string>> cells_of_cluster(client::Client& client, scheduler::Options& options);

class HivedLive {
 public:
  /// `text`: what the scheduler was started with. `source`: whom events name.
  HivedLive(Env& env,
            client::Client& client,
            client::Informers& informers,
            scheduler::Scheduler& scheduler,
            std::string text,
            const std::string& source);
  /// After the scheduler's start.
  void start();
  Task<void> stop();

 private:
  void changed(const json::Value& map);

  client::Informers& informers_;
  scheduler::Scheduler& scheduler_;
  std::string text_;  // what was looked at last
  std::unique_ptr<client::EventRecorder> events_;
  bool stopped_ = false;
};

}  // namespace muster
