/// All controllers of Muster, started and stopped together.
///
///   Controllers controllers(env, client, informers, options);
///   co_await controllers.start();   // returns when the caches are in step and every queue works
///   …
///   co_await controllers.stop();
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/env.h"
#include "client/client.h"
#include "client/events.h"
#include "client/informer.h"
#include "controllers/common/frame.h"
#include "controllers/common/plan.h"
#include "controllers/draft.h"
#include "controllers/endpoints/controller.h"
#include "controllers/nodes/controller.h"
#include "controllers/podgc/controller.h"
#include "controllers/queue/controller.h"
#include "controllers/t9k/keeper.h"

namespace muster::controllers {

struct Options {
  Settings settings;
  /// Job, StatefulSet, ReplicaSet, Deployment, Endpoints and nodes that fall silent, too. A real
  /// cluster has its own controller manager for these.
  bool workloads = true;
  int workers = 8;  // jobs of one kind worked on at once
  /// How long a node may not renew its lease. With `workloads` only.
  Duration node_grace = std::chrono::seconds(40);
};

/// The gang scheduler by name, as the operators' flag takes it: "" or "none", "volcano" (any case),
/// else the name of a scheduler that knows scheduling.x-k8s.io PodGroups. "muster" makes volcano's
/// PodGroups for pods of scheduler muster.
void set_gang_scheduler(Settings& settings, const std::string& name);

/// Every kind of job and, if wanted, the workloads.
std::vector<Kind> all_kinds(bool workloads);

class Controllers {
 public:
  Controllers(Env& env, client::Client& client, client::Informers& informers, Options options);
  ~Controllers();

  Task<void> start();
  Task<void> stop();
  /// No job is queued or being worked on.
  [[nodiscard]] bool idle() const;

  /// What these controllers would make of an object, as the server would store it.
  [[nodiscard]] Drafted draft(const json::Value& job, Time now) const;
  /// Where objects of this apiVersion and kind live, of those that become pods here; null: none do.
  [[nodiscard]] const client::Resource* find_resource(std::string_view api_version,
                                                      std::string_view kind) const;

 private:
  client::Informers& informers_;
  Options options_;
  std::vector<Kind> kinds_;
  Caches caches_;
  std::vector<std::unique_ptr<client::EventRecorder>> recorders_;
  std::vector<std::unique_ptr<Frame>> frames_;
  std::unique_ptr<endpoints::Controller> endpoints_;
  std::unique_ptr<podgc::Controller> podgc_;
  std::unique_ptr<nodes::Controller> nodes_;
  std::unique_ptr<queue::Controller> queues_;
  std::unique_ptr<t9k::Keeper> keeper_;
};

}  // namespace muster::controllers
