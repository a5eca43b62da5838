#include "portal/api/api.h"

#include <fmt/core.h>

#include "net/http/gzip.h"

namespace muster::portal {

Task<void> answer(net::ResponseWriter& writer, net::Response response) {
  const auto sent = co_await writer.send(std::move(response));
  (void)sent;  // they have gone
}

Task<void> answer_error(net::ResponseWriter& writer, Error error) {
  co_await answer(writer, error_answer(error));
}

Task<void> answer_json(net::ResponseWriter& writer, json::Value value, int status) {
  co_await answer(writer, json_answer(status, json::dump(value) + "\n"));
}

/// The same query and answer as the topic's subscription.
Task<void> serve_topic(ApiWorld api, ApiCall call) {
  std::string topic = call.path[0];
  if (call.path.size() == 2 && (topic == "job" || topic == "tasks")) topic += "/" + call.path[1];
  if (call.path.size() == 4 && (topic == "job" || topic == "tasks"))
    topic += "/" + call.path[1] + "/" + call.path[2] + "/" + call.path[3];
  const auto window = window_of_target(call.target);
  if (!window) {
    co_await answer_error(call.writer, window.error());
    co_return;
  }
  auto source =
      co_await open_topic(api.world, call.visitor.user, topic, query_of_target(call.target));
  if (!source) {
    co_await answer_error(call.writer, source.error());
    co_return;
  }
  ShownPage shown;
  net::Response response =
      json_answer(200, snapshot_text(**source, *window, api.world.now(), &shown, "") + "\n");
  response.headers.set("Vary", "Accept-Encoding");
  // Rows are much alike: packed they are a tenth. The server packs only what is far longer.
  if (net::accepts_gzip(call.request.headers) && response.body.size() > 2048) {
    std::string packed;
    co_await api.world.env.run_on_worker(
        [&packed, &response] { packed = net::gzip(response.body); });
    if (!packed.empty()) {
      response.body = std::move(packed);
      response.headers.set("Content-Encoding", "gzip");
    }
  }
  co_await answer(call.writer, std::move(response));
}

namespace {

/// What this server is not told to offer: `muster run` has no simulations, for one.
Task<void> not_here(net::ResponseWriter& writer, std::string what) {
  co_await answer(writer, error_answer(501, "NotImplemented", what));
}

bool is_topic(const ApiCall& call) {
  const std::string& word = call.path[0];
  if (call.request.method != "GET") return false;
  if (call.path.size() == 1)
    return word == "jobs" || word == "counts" || word == "tenants" || word == "nodes" ||
           word == "topology" || word == "events" || word == "gantt";
  return word == "tasks" || word == "job";
}

}  // namespace

Task<void> serve_api(ApiWorld api, ApiCall call) {
  const std::string word = call.path.empty() ? "" : call.path[0];
  const std::string method = call.request.method;
  const std::size_t parts = call.path.size();
  if (word == "live") {
    auto socket = co_await call.writer.upgrade_websocket("");
    if (!socket) co_return;
    co_await api.hub.serve(std::move(*socket), {call.visitor.user, call.visitor.session});
  } else if (parts > 0 && is_topic(call)) {
    co_await serve_topic(api, std::move(call));
  } else if (word == "jobs" && parts == 1 && method == "POST") {
    co_await submit_job(api, std::move(call));
  } else if (word == "check" && parts == 1 && method == "POST") {
    co_await serve_check(api, std::move(call));
  } else if (word == "jobs" && parts > 1) {
    co_await serve_job(api, std::move(call));
  } else if (word == "jobs:act" && method == "POST") {
    co_await act_on_jobs(api, std::move(call));
  } else if (word == "jobs:impact" && method == "GET") {
    co_await tell_impact(api, std::move(call));
  } else if (word == "nodes" && parts == 2 && method == "GET") {
    co_await serve_node(api, std::move(call));
  } else if (word == "hived" || word == "hived:check" || word == "cells") {
    co_await serve_hived(api, std::move(call));
  } else if ((word == "policy" || word == "policy:check") &&
             !api.world.options.policy_file.empty()) {
    co_await serve_policy(api, std::move(call));
  } else if (word == "views") {
    co_await serve_views(api, std::move(call));
  } else if (word == "sessions") {
    co_await serve_sessions(api, std::move(call));
  } else if (word == "search" || word == "suggest" || word == "services") {
    co_await serve_lookup(api, std::move(call));
  } else if (word == "log") {
    co_await serve_log(api, std::move(call));
  } else if (word == "exec") {
    co_await serve_exec(api, std::move(call));
  } else if (word == "tokens" && api.world.options.rest_call) {
    co_await serve_tokens(api, std::move(call));
  } else if (word == "audit" && method == "GET") {
    co_await serve_audit(api, std::move(call));
  } else if (word == "usage" && method == "GET" && api.world.options.queues) {
    co_await serve_usage(api, std::move(call));
  } else if (word == "whatif" && api.world.forecasts.offered()) {
    co_await serve_whatif(api, std::move(call));
  } else if (word == "sims" && api.simulations.offered()) {
    co_await serve_sims(api, std::move(call));
  } else if (word == "pai" && api.world.options.rest_as) {
    call.request.target =
        "/api/v2" + call.request.target.substr(std::string_view("/api/portal/v1/pai").size());
    co_await api.world.options.rest_as(call.visitor.user, std::move(call.request), call.writer);
  } else if (word == "whatif" || word == "sims" || word == "policy" || word == "policy:check" ||
             word == "usage" || word == "tokens" || word == "pai") {
    co_await not_here(call.writer, fmt::format("this server has no {}", word));
  } else {
    co_await answer(
        call.writer,
        error_answer(404,
                     "NotFound",
                     fmt::format("there is no {} {}", method, call.target.path.substr(0, 200))));
  }
}

}  // namespace muster::portal
