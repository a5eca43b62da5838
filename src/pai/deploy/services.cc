#include "pai/deploy/services.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "hived/config.h"
#include "hived/config_map.h"
#include "hived/tree.h"

namespace muster::pai {
namespace {

using client::resources::kConfigMaps;

constexpr const char* kClusterIdKey = "cluster-id";
constexpr const char* kStoppedKey = "stopped";
constexpr const char* kRestServerKey = "rest-server.json";
constexpr std::int64_t kLimitMost = 1'000'000;

Task<Result<void>> put(client::Client& client, json::Value map) {
  const std::string ns(json::string_at(map, "metadata", "namespace"));
  const std::string name(json::string_at(map, "metadata", "name"));
  const auto made = co_await client.create(kConfigMaps, ns, map);
  if (made) co_return Result<void>();
  if (made.error().code != Code::kAlreadyExists) co_return fail(made.error());
  json::remove(map, {"metadata"});
  const auto patched =
      co_await client.patch(kConfigMaps, ns, name, "", client::PatchType::kMerge, std::move(map));
  if (!patched) co_return fail(patched.error());
  co_return Result<void>();
}

}  // namespace

Services read_services(const json::Value& config_map) {
  Services services;
  const json::Value& data = json::at(config_map, "data");
  if (const std::string id = json::text_at(data, kClusterIdKey); !id.empty())
    services.cluster_id = id;
  services.layout = json::text_at(data, kLayoutFile);
  services.configuration = json::text_at(data, kServicesFile);
  for (const std::string& name : split_nonempty(json::string_at(data, kStoppedKey), ','))
    services.stopped.insert(name);
  if (auto started = json::parse(json::string_at(data, kRestServerKey)))
    services.rest_server = std::move(*started);
  return services;
}

Result<RateLimits> rate_limits_of(const json::Value& rest_server) {
  RateLimits limits;
  for (const auto& [name, limit] :
       {std::pair{"rate-limit-api-per-min", &limits.calls_per_minute},
        std::pair{"rate-limit-list-job-per-min", &limits.lists_per_minute},
        std::pair{"rate-limit-submit-job-per-hour", &limits.submits_per_hour}}) {
    const json::Value& found = json::at(rest_server, name);
    if (found.is_null()) continue;
    if (!found.is_int64() || found.as_int64() < 1 || found.as_int64() > kLimitMost)
      return fail(Code::kInvalid,
                  fmt::format("{}.{}: wanted a whole number from 1 to {}, found {}",
                              kRestServer,
                              name,
                              kLimitMost,
                              json::dump(found)));
    *limit = static_cast<std::size_t>(found.as_int64());
  }
  return limits;
}

Result<json::Value> rest_server_of(std::string_view configuration) {
  const auto parsed = json::parse_yaml_one(configuration);
  if (!parsed) return fail(parsed.error());
  const auto limits = rate_limits_of(json::at(*parsed, kRestServer));
  if (!limits) return fail(limits.error());
  return json::at(*parsed, kRestServer);
}

Task<Result<Services>> load_services(client::Client& client) {
  const auto map = co_await client.get(kConfigMaps, kServicesNamespace, kServicesName);
  if (!map && map.error().code == Code::kNotFound) co_return Services();
  if (!map) co_return fail(map.error());
  co_return read_services(*map);
}

Task<Result<void>> save_services(client::Client& client, const Services& services) {
  json::Value map = json::Object{
      {"metadata", {{"name", kServicesName}, {"namespace", kServicesNamespace}}},
      {"data",
       {{kClusterIdKey, services.cluster_id},
        {kLayoutFile, services.layout},
        {kServicesFile, services.configuration},
        {kRestServerKey, json::dump(services.rest_server)},
        {kStoppedKey,
         join(std::vector<std::string>(services.stopped.begin(), services.stopped.end()), ",")}}}};
  auto saved = co_await put(client, std::move(map));
  co_return saved;
}

Result<std::string> cells_of(std::string_view configuration) {
  const auto parsed = json::parse_yaml_one(configuration);
  if (!parsed) return fail(parsed.error());
  const json::Value& cells = json::at(*parsed, kHivedScheduler, "config");
  if (cells.is_null()) return std::string();
  if (!cells.is_string())
    return fail(Code::kInvalid,
                fmt::format("{}.config: wanted HiveD's configuration as text (\"config: |\")",
                            kHivedScheduler));
  auto config = hived::parse_config(json::as_string(cells));
  if (!config)
    return fail(Code::kInvalid,
                fmt::format("{}.config: {}", kHivedScheduler, config.error().message));
  const auto checked = hived::check_cells(*config);
  if (!checked)
    return fail(Code::kInvalid,
                fmt::format("{}.config: {}", kHivedScheduler, checked.error().message));
  return json::text(cells);
}

std::string configuration_with(std::string_view cells) {
  std::string text =
      "cluster:\n  common:\n    cluster-id: pai\n    k8s-rbac: 'true'\n"
      "rest-server: {}\n";
  if (cells.empty()) return text;
  text += "hivedscheduler:\n  config: |\n";
  for (const std::string& line : split(cells, '\n'))
    text += line.empty() ? "\n" : "    " + line + "\n";
  return text;
}

Task<Result<void>> apply_cells(client::Client& client, std::string text) {
  json::Value map = json::Object{
      {"metadata", {{"name", hived::kConfigMapName}, {"namespace", hived::kConfigMapNamespace}}},
      {"data", {{hived::kConfigMapKey, std::move(text)}}}};
  auto written = co_await put(client, std::move(map));
  co_return written;
}

Task<Result<void>> stop_cells(client::Client& client, bool stopped) {
  json::Value change = json::Object{
      {"data", {{hived::kConfigMapStopped, stopped ? json::Value("true") : json::Value()}}}};
  const auto patched = co_await client.patch(kConfigMaps,
                                             hived::kConfigMapNamespace,
                                             hived::kConfigMapName,
                                             "",
                                             client::PatchType::kMerge,
                                             std::move(change));
  if (!patched && patched.error().code != Code::kNotFound) co_return fail(patched.error());
  co_return Result<void>();
}

}  // namespace muster::pai
