#include "apiserver/rest/summary.h"

#include "apiserver/registry/guard_pods.h"
#include "apiserver/rest/read_ahead.h"
#include "kube/framework.h"
#include "kube/names.h"

namespace muster::apiserver {
namespace {

constexpr int kDepthMax = 64;

void clear_environment(json::Value& containers) {
  if (!containers.is_array()) return;
  for (json::Value& container : containers.get_array()) {
    if (!json::at(container, "env").is_array()) continue;
    for (json::Value& variable : json::make(container, {"env"}).get_array())
      json::remove(variable, {"value"});
  }
}

/// Which annotations are not to be seen.
enum class Hidden : std::uint8_t { kApplied, kAnnotations };

/// False if the value lies too deep to be looked at.
bool clear(json::Value& value, Hidden hidden, int depth) {
  if (depth > kDepthMax) return false;
  bool good = true;
  if (json::Array* array = value.if_array()) {
    for (json::Value& item : *array) good = clear(item, hidden, depth + 1) && good;
    return good;
  }
  if (!value.is_object()) return true;
  for (auto& member : value.get_object()) {
    const std::string_view key = member.key();
    if (key == "containers" || key == "initContainers" || key == "ephemeralContainers")
      clear_environment(member.value());
    else
      good = clear(member.value(), hidden, depth + 1) && good;
  }
  if (hidden == Hidden::kAnnotations)
    json::remove(value, {"metadata", "annotations"});
  else
    json::remove(value, {"metadata", "annotations", kube::names::kubernetes::kLastApplied});
  return good;
}

Result<std::string> summary_of(const std::string& body, Hidden hidden) {
  auto value = json::parse(body);
  if (!value) return fail(Code::kNotAcceptable, "summaries are available as JSON only");
  if (!clear(*value, hidden, 0)) return fail(Code::kForbidden, "it lies too deep for a summary");
  return json::dump(*value) + "\n";
}

}  // namespace

bool has_summary(const Call& call) {
  if (!call.subresource.empty() || (call.verb != "get" && call.verb != "list")) return false;
  return makes_pods(*call.resource);
}

Task<Result<Reply>> summarized(Core& core, const Call& call, net::Response response) {
  if (response.body.empty()) co_return Reply(std::move(response));
  const bool framework = call.resource->info.group == kube::resources::kFrameworks.group;
  const Hidden hidden = framework ? Hidden::kAnnotations : Hidden::kApplied;
  Result<std::string> made = std::string();
  if (response.body.size() < kReadAheadFrom) {
    made = summary_of(response.body, hidden);
  } else {
    std::function<void()> work = [&] { made = summary_of(response.body, hidden); };
    co_await core.env.run_on_worker(std::move(work));
  }
  if (!made) co_return fail(made.error());
  response.body = std::move(*made);
  co_return Reply(std::move(response));
}

}  // namespace muster::apiserver
