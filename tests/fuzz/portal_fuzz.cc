/// What strangers send to the portal: messages of a tab, queries of lists, bodies of calls (acts on
/// jobs, manifests, simulations, questions, configurations), cookies and names of encodings. Each is
/// parsed to something sane, or refused with a message.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "answers/changes.h"
#include "answers/jobs/facts.h"
#include "engine/engine.h"
#include "hived/config.h"
#include "json/json.h"
#include "json/yaml.h"
#include "portal/api/locate.h"
#include "portal/api/mask.h"
#include "portal/api/simulations.h"
#include "portal/files/files.h"
#include "portal/http/site.h"
#include "portal/jobs/query.h"
#include "portal/live/protocol.h"

namespace a = muster::answers;
namespace p = muster::portal;

static void try_query(const muster::json::Value& value) {
  const auto query = p::parse_job_query(value, "alice");
  if (!query && query.error().message.empty()) std::abort();
  if (query && query->key({.all = true}).empty()) std::abort();
}

/// POST sims: what it is given becomes words of a command line and names of files.
static void try_simulation(const muster::json::Value& value) {
  const auto ask = p::read_sim_ask(value);
  if (!ask) {
    if (ask.error().message.empty()) std::abort();
    return;
  }
  if (ask->trace.empty() || ask->nodes.empty() == ask->hived.empty()) std::abort();
  for (const std::string& policy : ask->policies) {
    if (policy.empty() || policy.find_first_of("/.,") != std::string::npos) std::abort();
  }
}

/// POST whatif: a list of changes, read against a cluster that has nothing.
static void try_changes(const muster::json::Value& value) {
  static const muster::engine::Engine engine{muster::engine::Config{}};
  const muster::json::Value& list = muster::json::at(value, "changes");
  const auto manifests = a::manifests_of(list);
  if (!manifests && manifests.error().message.empty()) std::abort();
  a::jobs_named(list);
  for (const std::string& cells : a::cells_of(list)) (void)muster::hived::parse_config(cells);
  const auto changes = a::read_changes(list, {engine, {}, {}, {}, {}});
  if (!changes && changes.error().message.empty()) std::abort();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::int64_t sub = 0;
  const auto said = p::parse_said(text, &sub);
  if (said) {
    if (said->window.end < said->window.first ||
        said->window.end - said->window.first > p::Window::kMax)
      std::abort();
    try_query(said->query);
  } else if (said.error().message.empty()) {
    std::abort();
  }
  if (const auto value = muster::json::parse(text); value) {
    try_query(*value);
    try_query(muster::json::at(*value, "query"));
    try_simulation(*value);
    try_changes(*value);
    p::masked(*value, p::Environment::kHidden);
    a::task_facts(*value);
    for (std::size_t i = 0; i < a::kJobKinds; ++i) a::job_facts(static_cast<a::JobKind>(i), *value);
  }
  // A manifest with a path in its first line, as a complaint names it.
  const std::string_view first = text.substr(0, text.find('\n'));
  const p::Spot spot = p::locate(text, p::path_parts(first));
  if (spot.line < 0 || spot.col < 0 || p::spot_of_message(text).line < 0) std::abort();
  const auto yaml = muster::json::parse_yaml_one(text, 10'000);
  if (yaml) p::masked(*yaml, p::Environment::kHidden);
  muster::net::Request request;
  request.headers.set("Cookie", std::string(text));
  request.headers.set("Host", std::string(text));
  p::cookie_of(request, "muster");
  p::host_accepted({}, request);
  p::choose_encoding(text, true, true);
  if (const std::string next = p::safe_next(text);
      next.empty() || next[0] != '/' || next.starts_with("//"))
    std::abort();
  if (const auto target = muster::net::parse_target(text); target) {
    try_query(p::query_of_target(*target));
    const auto window = p::window_of_target(*target);
    if (window && window->end - window->first > p::Window::kMax) std::abort();
    if (const auto page = p::openpai_page(*target); page && !page->starts_with('/')) std::abort();
  }
  return 0;
}
