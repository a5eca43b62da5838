/// The topics of the portal: what each shows to a user, for subscriptions and GETs alike.
#pragma once

#include <memory>
#include <string>

#include "portal/api/trail.h"
#include "portal/cluster/events.h"
#include "portal/cluster/forecasts.h"
#include "portal/cluster/nodes.h"
#include "portal/jobs/index.h"
#include "portal/live/source.h"
#include "portal/options.h"
#include "portal/session/rights.h"
#include "portal/topics/starts.h"
#include "portal/topics/tally.h"

namespace muster::portal {

struct World {
  Env& env;
  Kube& kube;
  Rights& rights;
  JobIndex& jobs;
  Nodes& nodes;
  Events& events;
  Tally& tally;
  client::Informers& informers;
  Trail& trail;
  Forecasts& forecasts;
  Starts& starts;
  const Options& options;
  [[nodiscard]] Millis now() const { return env.now().us / 1000; }
};

/// Refuses with what is wrong: no such topic, a bad query, a job that this user may not see.
Task<Result<SourcePtr>> open_topic(World& world, User user, std::string topic, json::Value query);

/// The job if this user may see it; NotFound otherwise, as if it were not there.
Task<Result<const JobIndex::Entry*>> find_job(World& world, User user, std::string id);
bool sees(const Visible& visible, const JobIndex::Entry& entry);

// One for each topic.
Result<SourcePtr> jobs_topic(World& world,
                             const User& user,
                             VisiblePtr visible,
                             const json::Value& query);
Result<SourcePtr> tasks_topic(World& world, const std::string& id, const json::Value& query);
SourcePtr job_topic(World& world, const User& user, VisiblePtr visible, const std::string& id);
SourcePtr counts_topic(World& world, const User& user, VisiblePtr visible);
SourcePtr tenants_topic(World& world, const User& user);
Result<SourcePtr> nodes_topic(World& world, VisiblePtr visible, const json::Value& query);
SourcePtr topology_topic(World& world, VisiblePtr visible);
Result<SourcePtr> events_topic(World& world, VisiblePtr visible, const json::Value& query);
Task<Result<SourcePtr>> gantt_topic(World& world, User user, VisiblePtr visible, json::Value query);

/// JobDetail of web/src/shapes/job.ts.
std::string job_detail(World& world,
                       const User& user,
                       const Visible& visible,
                       const JobIndex::Entry& entry);

}  // namespace muster::portal
