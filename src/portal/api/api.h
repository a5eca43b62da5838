/// The portal's own API: /api/portal/v1/…, beside the topics. Each call is a coroutine that gets who
/// asks, what, and where the answer goes.
#pragma once

#include <string>
#include <vector>

#include "kube/meta.h"
#include "net/http/http.h"
#include "portal/api/check.h"
#include "portal/api/simulations.h"
#include "portal/cluster/samples.h"
#include "portal/http/site.h"
#include "portal/live/hub.h"
#include "portal/session/sessions.h"
#include "portal/topics/topics.h"

namespace muster::portal {

struct Visitor {
  User user;
  std::string session;  // id; empty: a bearer token
};

struct ApiCall {
  net::Request request;
  net::Target target;
  std::vector<std::string> path;  // after /api/portal/v1
  Visitor visitor;
  net::ResponseWriter& writer;
};

struct ApiWorld {
  World& world;
  Sessions& sessions;
  Hub& hub;
  const Site& site;
  const Samples& samples;
  CheckLimit& checks;
  Simulations& simulations;
};

/// Answers every call of somebody who is signed in.
Task<void> serve_api(ApiWorld api, ApiCall call);

// The parts, each for calls of its own; all of them answer.
Task<void> serve_topic(ApiWorld api, ApiCall call);
Task<void> serve_job(ApiWorld api, ApiCall call);       // jobs/ID/…
Task<void> submit_job(ApiWorld api, ApiCall call);      // POST jobs
Task<void> serve_check(ApiWorld api, ApiCall call);     // POST check
Task<void> act_on_jobs(ApiWorld api, ApiCall call);     // POST jobs:act
Task<void> tell_impact(ApiWorld api, ApiCall call);     // GET jobs:impact
Task<void> serve_node(ApiWorld api, ApiCall call);      // nodes/NAME
Task<void> serve_hived(ApiWorld api, ApiCall call);     // hived, hived:check, hived/versions, cells
Task<void> serve_policy(ApiWorld api, ApiCall call);    // policy, policy:check, policy/versions
Task<void> serve_views(ApiWorld api, ApiCall call);     // views
Task<void> serve_sessions(ApiWorld api, ApiCall call);  // sessions
Task<void> serve_lookup(ApiWorld api, ApiCall call);    // search, suggest, services
Task<void> serve_tokens(ApiWorld api, ApiCall call);    // tokens
Task<void> serve_audit(ApiWorld api, ApiCall call);     // audit
Task<void> serve_usage(ApiWorld api, ApiCall call);     // usage
Task<void> serve_whatif(ApiWorld api, ApiCall call);    // whatif
Task<void> serve_sims(ApiWorld api, ApiCall call);      // sims
Task<void> serve_log(ApiWorld api, ApiCall call);       // log, WebSocket
Task<void> serve_exec(ApiWorld api, ApiCall call);      // exec, WebSocket
/// The log of one task in an earlier attempt, as a file.
Task<void> give_former_log(ApiWorld& api,
                           ApiCall& call,
                           const JobIndex::Entry& entry,
                           const TaskFacts& task);

/// Where the object of an apiVersion and kind is created, as the cluster itself says; NotFound when
/// it has no such kind.
Task<Result<std::string>> collection_of(World& world,
                                        const User& user,
                                        const kube::Gvk& gvk,
                                        const std::string& ns);

/// What the portal keeps for one person, "views" or "tokens"; null: nothing.
Task<Result<json::Value>> read_kept(World& world, std::string user, std::string what);
Task<Result<void>> write_kept(World& world, std::string user, std::string what, json::Value value);

/// /kube/…: the cluster's API in the visitor's name.
Task<void> serve_kube(World& world,
                      Visitor visitor,
                      net::Request request,
                      net::ResponseWriter& writer);
/// Bytes of two WebSockets to each other, until one closes.
Task<void> join_sockets(Env& env,
                        std::unique_ptr<net::WebSocket> one,
                        std::unique_ptr<net::WebSocket> other);

Task<void> answer(net::ResponseWriter& writer, net::Response response);
Task<void> answer_error(net::ResponseWriter& writer, Error error);
Task<void> answer_json(net::ResponseWriter& writer, json::Value value, int status = 200);

}  // namespace muster::portal
