#include "pai/rest/rest.h"

#include <fmt/core.h>

#include "base/log.h"
#include "base/strings.h"
#include "pai/rest/body.h"
#include "pai/rest/routes.h"

namespace muster::pai {
namespace rest {

Reply said(int status, std::string message) {
  return {.status = status, .body = json::Object{{"message", std::move(message)}}};
}

Reply answered(json::Value body) { return {.status = 200, .body = std::move(body)}; }

Refusal bad_parameters(std::string message) {
  return {.status = 400, .code = "InvalidParametersError", .message = std::move(message)};
}

Refusal not_admin() {
  return {.status = 403,
          .code = "ForbiddenUserError",
          .message = "Non-admin is not allow to do this operation."};
}

Refusal too_often(Duration wait) {
  const auto seconds = static_cast<int>(
      std::chrono::duration_cast<std::chrono::seconds>(wait + std::chrono::milliseconds(999))
          .count());
  return {.status = 429,
          .code = "TooManyRequestsError",
          .message = fmt::format("Too many requests, please try again in {} s.", seconds),
          .retry_after_s = seconds};
}

}  // namespace rest

using rest::Call;
using rest::Reply;
using rest::Route;
using rest::Who;

namespace {

std::string host_of(const std::string& address) { return address.substr(0, address.rfind(':')); }

net::Response response_of(const Answer<Reply>& answer) {
  net::Response response;
  response.headers.set("Cache-Control", "no-store");
  response.headers.set("X-Content-Type-Options", "nosniff");
  if (!answer) {
    const Refusal& refusal = answer.error();
    response.status = refusal.status;
    response.headers.set("Content-Type", "application/json; charset=utf-8");
    if (refusal.retry_after_s > 0)
      response.headers.set("Retry-After", std::to_string(refusal.retry_after_s));
    response.body = json::dump(json::Object{{"code", refusal.code}, {"message", refusal.message}});
    return response;
  }
  response.status = answer->status;
  const bool text = !answer->type.empty();
  response.headers.set("Content-Type", text ? answer->type : "application/json; charset=utf-8");
  response.body = text ? answer->text : json::dump(answer->body);
  return response;
}

Answer<void> check_who(const Caller& caller, Who who) {
  if (caller.application && who != Who::kPrograms)
    return refuse(403, "ForbiddenUserError", "Applications are not allowed to do this operation.");
  if (who == Who::kAdmin && !caller.admin) return refuse(rest::not_admin());
  return {};
}

}  // namespace

Rest::Rest(RestParts parts, RestOptions options)
    : env_(parts.env),
      people_(parts.people),
      options_(std::move(options)),
      calls_(options_.calls_per_minute, std::chrono::minutes(1)),
      jobs_{parts.env,
            parts.client,
            parts.people,
            parts.cells,
            parts.index,
            parts.attempts,
            rest::RateLimit(options_.lists_per_minute, std::chrono::minutes(1)),
            rest::RateLimit(options_.submits_per_hour, std::chrono::hours(1)),
            options_.scheduler,
            options_.runtime_image,
            options_.former_log,
            {}} {
  add(rest::login_routes(people_, options_.version));
  add(rest::user_routes(people_));
  add(rest::group_routes(people_));
  add(rest::cluster_routes(people_, parts.cells, parts.client));
  add(rest::submit_routes(jobs_));
  add(rest::job_routes(jobs_));
  add(rest::task_routes(jobs_));
}

void Rest::set_limits(const RateLimits& limits) {
  calls_.set_most(limits.calls_per_minute.value_or(options_.calls_per_minute));
  jobs_.lists.set_most(limits.lists_per_minute.value_or(options_.lists_per_minute));
  jobs_.submits.set_most(limits.submits_per_hour.value_or(options_.submits_per_hour));
}

void Rest::add(std::vector<Route> routes) {
  for (Route& route : routes) routes_.push_back(std::move(route));
}

net::Handler Rest::handler() {
  return [this](net::Request request, net::ResponseWriter& writer) {
    return serve(std::move(request), writer);
  };
}

Task<void> Rest::serve(net::Request request, net::ResponseWriter& writer) {
  Call call;
  call.request = std::move(request);
  auto target = net::parse_target(call.request.target);
  Answer<Reply> reply = Reply();
  if (target) {
    call.target = std::move(*target);
    reply = co_await answer(call);
  } else {
    reply = refuse(rest::bad_parameters(target.error().message));
  }
  if (!reply && reply.error().status >= 500)
    log::warn("pai", "{} {}: {}", call.request.method, call.target.path, reply.error().message);
  const auto sent = co_await writer.send(response_of(reply));
  (void)sent;
}

Task<Answer<Reply>> Rest::answer(Call& call) {
  const Duration wait = calls_.ask(host_of(call.request.peer.address), env_.monotonic());
  if (wait > Duration::zero()) co_return refuse(rest::too_often(wait));
  if (stopped_)
    co_return refuse(
        503,
        "UnknownError",
        "rest-server is stopped; start it with 'paictl service start -n rest-server'.");
  // [rest-server] api v1|v2 …
  std::vector<std::string> path = call.target.segments;
  if (!path.empty() && path.front() == "rest-server") path.erase(path.begin());
  const bool versioned =
      path.size() >= 2 && path[0] == "api" && (path[1] == "v1" || path[1] == "v2");
  Found found;
  if (versioned) {
    path.erase(path.begin(), path.begin() + 2);
    found = find(call.request.method, path);
  }
  if (found.route == nullptr)
    co_return refuse(404, "NoApiError", fmt::format("API {} is not found.", call.request.target));
  call.values = std::move(found.values);
  if (found.route->who != Who::kAll) {
    auto caller = people_.caller_of(call.request);
    if (!caller) co_return refuse(caller.error());
    call.caller = std::move(*caller);
    const auto allowed = check_who(call.caller, found.route->who);
    if (!allowed) co_return refuse(allowed.error());
  }
  auto body = rest::read_body(call.request);
  if (!body) co_return refuse(body.error());
  call.body = std::move(*body);
  auto reply = co_await found.route->run(call);
  co_return reply;
}

Rest::Found Rest::find(const std::string& method, const std::vector<std::string>& path) const {
  // A literal word goes before a placeholder: "users/me" before "users/:user".
  Found best;
  for (const Route& route : routes_) {
    if (route.method != method) continue;
    const auto pattern = split_nonempty(route.path, '/');
    if (pattern.size() != path.size()) continue;
    Found found{&route, {}};
    bool fits = true;
    for (std::size_t i = 0; fits && i < path.size(); ++i) {
      if (pattern[i].front() == ':')
        found.values.push_back(path[i]);
      else
        fits = pattern[i] == path[i];
    }
    if (!fits) continue;
    if (best.route == nullptr || found.values.size() < best.values.size()) best = std::move(found);
  }
  return best;
}

}  // namespace muster::pai
