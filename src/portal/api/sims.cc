/// GET, POST sims; GET, DELETE sims/ID; GET sims/ID/json and sims/ID/html as files.
#include <fmt/core.h>

#include "portal/api/api.h"

namespace muster::portal {
namespace {

json::Value row_of(const Simulations::Run& run) {
  return {{"id", run.id},
          {"name", run.name},
          {"user", run.user},
          {"state", sim_state_name(run.state)},
          {"began", run.began_ms},
          {"ended", run.ended_ms == 0 ? json::Value(nullptr) : json::Value(run.ended_ms)},
          {"text", run.text}};
}

Task<void> begin(Simulations& runs, ApiCall& call) {
  const auto value = json::parse(call.request.body);
  auto ask = value ? read_sim_ask(*value) : fail(value.error());
  if (!ask) {
    co_await answer_error(call.writer, ask.error());
    co_return;
  }
  const auto id = runs.start(call.visitor.user.name, *ask);
  if (id)
    co_await answer_json(call.writer, {{"id", *id}}, 201);
  else
    co_await answer_error(call.writer, id.error());
}

Task<void> give_file(Simulations& runs, ApiCall& call, std::string id, std::string kind) {
  const auto text = runs.result(id, kind);
  if (!text) {
    co_await answer(call.writer, error_answer(404, "NotFound", "it has no result"));
    co_return;
  }
  net::Response response;
  // Never shown as a page of this site.
  response.headers.set("Content-Type", kind == "html" ? "text/html" : "application/json");
  response.headers.set("Content-Disposition",
                       fmt::format("attachment; filename=\"simulation.{}\"", kind));
  response.body = *text;
  co_await answer(call.writer, std::move(response));
}

}  // namespace

Task<void> serve_sims(ApiWorld api, ApiCall call) {
  Simulations& runs = api.simulations;
  const User& user = call.visitor.user;
  const std::string& method = call.request.method;
  if (call.path.size() == 1 && method == "POST") {
    co_await begin(runs, call);
    co_return;
  }
  if (call.path.size() == 1 && method == "GET") {
    json::Array rows;
    for (const Simulations::Run* run : runs.all()) {
      if (user.admin || run->user == user.name) rows.push_back(row_of(*run));
    }
    co_await answer_json(call.writer, std::move(rows));
    co_return;
  }
  const Simulations::Run* run = call.path.size() > 1 ? runs.find(call.path[1]) : nullptr;
  if (run == nullptr || (!user.admin && run->user != user.name)) {
    co_await answer(call.writer, error_answer(404, "NotFound", "there is no such simulation"));
  } else if (call.path.size() == 2 && method == "DELETE") {
    runs.remove(run->id);
    co_await answer_json(call.writer, json::Object());
  } else if (call.path.size() == 2 && method == "GET") {
    // Numbers stay as the command has written them, to the last digit.
    std::string policies = "null";
    if (run->state == Simulations::Run::State::kDone)
      policies = runs.result(run->id, "json").value_or(policies);
    co_await answer(
        call.writer,
        json_answer(
            200,
            fmt::format("{{\"row\":{},\"policies\":{}}}\n", json::dump(row_of(*run)), policies)));
  } else if (call.path.size() == 3 && method == "GET" &&
             (call.path[2] == "json" || call.path[2] == "html")) {
    co_await give_file(runs, call, run->id, call.path[2]);
  } else {
    co_await answer(call.writer,
                    error_answer(405, "MethodNotAllowed", "wanted GET or DELETE sims/ID"));
  }
}

}  // namespace muster::portal
