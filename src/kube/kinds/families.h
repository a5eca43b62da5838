/// The kinds by the files that say what they are. A new file adds its function here, and to the table
/// below.
#pragma once

#include "kube/kinds/kind.h"

namespace muster::kube::families {

std::vector<KindRules> pod();
std::vector<KindRules> pod_template();
std::vector<KindRules> replica_set();
std::vector<KindRules> deployment();
std::vector<KindRules> stateful_set();
std::vector<KindRules> daemon_set();
std::vector<KindRules> controller_revision();
std::vector<KindRules> job();
std::vector<KindRules> cron_job();
std::vector<KindRules> pod_group();
std::vector<KindRules> service();
std::vector<KindRules> endpoints();
std::vector<KindRules> config_map();
std::vector<KindRules> secret();
std::vector<KindRules> service_account();
std::vector<KindRules> name_space();
std::vector<KindRules> node();
std::vector<KindRules> event();
std::vector<KindRules> lease();
std::vector<KindRules> resource_quota();
std::vector<KindRules> limit_range();
std::vector<KindRules> volume();
std::vector<KindRules> storage();
std::vector<KindRules> priority_class();
std::vector<KindRules> disruption_budget();
std::vector<KindRules> autoscaler();
std::vector<KindRules> rbac();
std::vector<KindRules> network();
std::vector<KindRules> runtime_class();
std::vector<KindRules> crd();
std::vector<KindRules> stored();

using Family = std::vector<KindRules> (*)();
inline constexpr Family kAll[] = {pod,
                                  pod_template,
                                  replica_set,
                                  deployment,
                                  stateful_set,
                                  daemon_set,
                                  controller_revision,
                                  job,
                                  cron_job,
                                  pod_group,
                                  service,
                                  endpoints,
                                  config_map,
                                  secret,
                                  service_account,
                                  name_space,
                                  node,
                                  event,
                                  lease,
                                  resource_quota,
                                  limit_range,
                                  volume,
                                  storage,
                                  priority_class,
                                  disruption_budget,
                                  autoscaler,
                                  rbac,
                                  network,
                                  runtime_class,
                                  crd,
                                  stored};

}  // namespace muster::kube::families
