#include "pai/rest/attempts.h"

#include <fmt/core.h>

#include "base/log.h"
#include "base/strings.h"
#include "kube/framework.h"
#include "kube/meta.h"

namespace muster::pai::rest {
namespace {

using client::resources::kConfigMaps;

constexpr std::size_t kKeptMax = 20;
/// A ConfigMap holds a MiB.
constexpr std::size_t kBytesMax = 900 * 1024;
/// So many are written at once; what comes then waits in the Frameworks' own events, and an attempt
/// more is lost rather than memory.
constexpr std::size_t kWritingMax = 1000;

std::string map_name(std::string_view framework) { return fmt::format("{}-attempts", framework); }

std::int64_t attempt_of(const json::Value& framework) {
  return json::int_at(framework, "status", "attemptStatus", "id");
}

/// Without what is the same in every attempt and long.
json::Value trimmed(const json::Value& framework) {
  json::Value kept = framework;
  json::remove(kept, {"metadata", "managedFields"});
  json::remove(kept, {"metadata", "annotations", kube::names::pai::kConfig});
  json::remove(kept, {"metadata", "annotations", kube::names::pai::kRuntime});
  if (json::at(kept, "spec", "taskRoles").is_array())
    for (json::Value& role : json::make(kept, {"spec", "taskRoles"}).as_array())
      json::remove(role, {"task", "pod", "spec"});
  return kept;
}

}  // namespace

void Attempts::follow(JobIndex& index) {
  index.on_change([this](const client::ObjectPtr& old_job, const client::ObjectPtr& new_job) {
    changed(old_job, new_job);
  });
}

Task<void> Attempts::stop() {
  gate_.close();
  co_await gate_.wait_empty(std::chrono::seconds(5));
}

void Attempts::changed(const client::ObjectPtr& old_job, const client::ObjectPtr& new_job) {
  if (!old_job || !new_job || kube::uid_of(*old_job) != kube::uid_of(*new_job)) return;
  if (attempt_of(*new_job) <= attempt_of(*old_job) || gate_.closed() ||
      gate_.inside() >= kWritingMax)
    return;
  env_.spawn(keep(old_job));
}

Task<void> Attempts::keep(client::ObjectPtr framework) {
  const Gate::Pass pass(gate_);
  const std::string ns(kube::namespace_of(*framework));
  const std::string name = map_name(kube::name_of(*framework));
  const std::string number = std::to_string(attempt_of(*framework));
  // A copy and a text of all tasks: beside the loop.
  std::string text;
  std::function<void()> make = [&] { text = json::dump(trimmed(*framework)); };
  co_await env_.run_on_worker(std::move(make));
  if (text.size() > kBytesMax) co_return;
  for (int tries = 0; tries < 5; ++tries) {
    auto map = co_await client_.get(kConfigMaps, ns, name);
    if (!map && map.error().code != Code::kNotFound) break;
    Result<json::Value> written = json::Value();
    if (!map) {
      json::Value fresh = json::Object{
          {"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata",
           {{"name", name},
            {"namespace", ns},
            {"ownerReferences",
             json::Array{json::Object{{"apiVersion", kube::resources::kFrameworks.api_version()},
                                      {"kind", kube::resources::kFrameworks.kind},
                                      {"name", json::at(*framework, "metadata", "name")},
                                      {"uid", json::at(*framework, "metadata", "uid")}}}}}},
          {"data", {{number, text}}}};
      written = co_await client_.create(kConfigMaps, ns, std::move(fresh));
    } else {
      // The oldest make room.
      json::Object& data = json::make_object(*map, {"data"});
      data[number] = text;
      std::map<std::int64_t, std::string> kept;
      std::size_t bytes = 0;
      for (const auto& each : data) {
        kept[parse_int(each.key()).value_or(0)] = std::string(each.key());
        bytes += json::as_string(each.value()).size();
      }
      for (auto oldest = kept.begin();
           kept.size() > 1 && (kept.size() > kKeptMax || bytes > kBytesMax);
           oldest = kept.erase(oldest)) {
        bytes -= json::as_string(data[oldest->second]).size();
        data.erase(oldest->second);
      }
      written = co_await client_.update(kConfigMaps, std::move(*map));
    }
    if (written) co_return;
    const Code code = written.error().code;
    if (code != Code::kConflict && code != Code::kAlreadyExists) break;
  }
  log::warn("pai", "attempt {} of {} is not kept", number, kube::name_of(*framework));
}

Task<Result<std::map<std::int64_t, json::Value>>> Attempts::of(const ListedJob& job) {
  std::map<std::int64_t, json::Value> attempts;
  // The job may change while we wait.
  const client::ObjectPtr framework = job.object;
  if (attempt_of(*framework) == 0) co_return attempts;
  const auto map = co_await client_.get(kConfigMaps,
                                        std::string(kube::namespace_of(*framework)),
                                        map_name(kube::name_of(*framework)));
  if (!map && map.error().code == Code::kNotFound) co_return attempts;
  if (!map) co_return fail(map.error());
  for (const auto& each : json::object_at(*map, "data")) {
    auto read = json::parse(json::as_string(each.value()));
    if (read && kube::uid_of(*read) == kube::uid_of(*framework))
      attempts[parse_int(each.key()).value_or(0)] = std::move(*read);
  }
  co_return attempts;
}

}  // namespace muster::pai::rest
