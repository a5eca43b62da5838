/// What somebody may look at: asked of the cluster's own rules, remembered for half a minute.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/env.h"
#include "client/informer.h"
#include "portal/jobs/query.h"
#include "portal/jobs/table.h"
#include "portal/session/kube.h"

namespace muster::portal {

using VisiblePtr = std::shared_ptr<const Visible>;

class Rights {
 public:
  Rights(Env& env, Kube& kube, client::Informers& informers)
      : env_(env), kube_(kube), namespaces_(informers.get(client::resources::kNamespaces)) {}

  /// Namespaces whose pods the user may list, whole or as summaries, and so whose jobs; and those
  /// where they may stop them.
  Task<VisiblePtr> visible(User user);
  /// Whether they may see what is in the environments of the namespace's pods.
  Task<bool> reads_environments(User user, std::string ns);
  void forget(const std::string& user);

  static constexpr Duration kFor = std::chrono::seconds(30);

 private:
  struct Known {
    VisiblePtr visible;
    Duration at{};
  };
  Task<bool> lists_pods(User user, std::string ns);

  static constexpr std::size_t kMax = 4096;
  Env& env_;
  Kube& kube_;
  client::Informer& namespaces_;
  std::map<std::string, Known> known_;
};

}  // namespace muster::portal
