/// OpenPAI's service configuration as paictl pushes it: kept in a ConfigMap, without effect until the
/// services are started with it. paictl writes it, the REST server looks whether it is to answer.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "client/client.h"
#include "json/json.h"

namespace muster::pai {

inline constexpr const char* kServicesNamespace = "kube-system";
inline constexpr const char* kServicesName = "muster-pai-services";

inline constexpr const char* kLayoutFile = "layout.yaml";
inline constexpr const char* kServicesFile = "services-configuration.yaml";
/// As some documents spell it.
inline constexpr const char* kServicesFileToo = "service-configuration.yaml";

inline constexpr const char* kRestServer = "rest-server";
inline constexpr const char* kHivedScheduler = "hivedscheduler";

struct Services {
  std::string cluster_id = "pai";
  std::string layout;         // empty: none was pushed
  std::string configuration;  // likewise
  std::set<std::string> stopped;
  /// rest-server of the configuration that it was last started with.
  json::Value rest_server;
};

/// OpenPAI's `rate-limit-…` of rest-server; nothing where the configuration says nothing.
struct RateLimits {
  std::optional<std::size_t> calls_per_minute, lists_per_minute, submits_per_hour;
};
/// Each a whole number from 1 to a million; the error names the one that is not.
Result<RateLimits> rate_limits_of(const json::Value& rest_server);

Services read_services(const json::Value& config_map);
Task<Result<Services>> load_services(client::Client& client);
Task<Result<void>> save_services(client::Client& client, const Services& services);

/// rest-server of a services-configuration.yaml, checked.
Result<json::Value> rest_server_of(std::string_view configuration);
/// hivedscheduler.config of a services-configuration.yaml, checked as the scheduler will; empty if
/// the file has none.
Result<std::string> cells_of(std::string_view configuration);
/// A configuration with these cells, as `config pull` writes it where nothing was pushed.
std::string configuration_with(std::string_view cells);

/// Puts HiveD's configuration where the scheduler follows it.
Task<Result<void>> apply_cells(client::Client& client, std::string text);
/// Has the scheduler place nothing in cells, or place again. Nothing where there are no cells.
Task<Result<void>> stop_cells(client::Client& client, bool stopped);

}  // namespace muster::pai
