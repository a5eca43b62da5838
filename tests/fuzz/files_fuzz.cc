/// What people and other programs write for Muster to read: configurations, job files, schedules,
/// credentials, logs. The first byte chooses the reader; each reads the text or says what is wrong with it.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "agent/streams/log_reader.h"
#include "base/time_zone.h"
#include "client/exec_credential.h"
#include "client/kubeconfig.h"
#include "controllers/batchjob/failure_policy.h"
#include "controllers/cronjob/schedule.h"
#include "engine/cells/allocator.h"
#include "hived/annotations.h"
#include "hived/config.h"
#include "json/pick.h"
#include "pai/protocol/submit.h"
#include "scheduler/config.h"
#include "sim/policy.h"
#include "sim/trace.h"

using namespace muster;

namespace {

void read_kubeconfig(std::string_view text) {
  const auto file = json::parse_yaml_one(text);
  if (!file || json::dump(*file).find("\"exec\"") != std::string::npos)
    return;  // names a program, which would be run
  (void)client::connection_from_yaml(text, "/nonexistent", "").has_value();
}

void read_pai(std::string_view text) {
  pai::Facts facts;
  facts.virtual_clusters["default"] = {};
  (void)pai::submit(text, "alice", facts).has_value();
}

void read_cells(std::string_view text) {
  const auto config = hived::parse_config(text);
  if (config) (void)engine::cells::CellAllocator::create(config->cells, {}).has_value();
}

void read_scheduling_spec(std::string_view text) {
  const auto spec = hived::parse_scheduling_spec(text, "n", "p");
  if (spec && !hived::parse_scheduling_spec(hived::format_scheduling_spec(*spec), "n", "p"))
    std::abort();
}

void read_bind_info(std::string_view text) {
  const auto bind = hived::parse_bind_info(text);
  if (bind && !hived::parse_bind_info(hived::format_bind_info(*bind))) std::abort();
}

void read_schedule(std::string_view text) {
  const auto schedule = controllers::cronjob::Schedule::parse(text);
  if (!schedule) return;
  const Time after = Time::from_seconds(1'700'000'000);
  const auto next = schedule->next(after);
  if (next && *next <= after) std::abort();
}

void read_zone(std::string_view text) {
  const auto zone = TimeZone::parse(text);
  if (!zone) return;
  for (const std::int64_t year : {1, 30, 50, 80, 200})
    (void)zone->offset_s(Time::from_seconds(year * 31'556'952));
}

void read_picks(std::string_view text) {
  static const json::Value kObject = *json::parse(R"({"a":{"b":[{"c":1,"d":"x"}]},"e":"f"})");
  const auto picks = json::parse_picks(text);
  if (!picks) return;
  if (json::picks_text(*json::parse_picks(json::picks_text(*picks))) != json::picks_text(*picks))
    std::abort();
  std::string from_value;
  json::append_picked(kObject, *picks, from_value);
  if (from_value != json::pick_from_text(json::dump(kObject), *picks)) std::abort();
}

void read_log(std::string_view text) {
  agent::LogOptions options;
  options.timestamps = true;
  agent::LogDecoder whole(options), pieces(options);
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += 7) out += pieces.feed(text.substr(at, 7));
  if (out != whole.feed(text)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 16) {
    case 0:
      read_kubeconfig(text);
      break;
    case 1:
      (void)client::parse_exec_credential(text).has_value();
      break;
    case 2:
      (void)scheduler::parse_volcano_config(text).has_value();
      break;
    case 3:
      read_cells(text);
      break;
    case 4:
      read_scheduling_spec(text);
      break;
    case 5:
      read_bind_info(text);
      break;
    case 6:
      read_pai(text);
      break;
    case 7:
      read_schedule(text);
      break;
    case 8:
      read_zone(text);
      break;
    case 9:
      read_picks(text);
      break;
    case 10:
      read_log(text);
      break;
    case 11:
      (void)sim::parse_policies(text).has_value();
      break;
    case 12:
      (void)sim::parse_jobs(text, {}).has_value();
      break;
    case 13:
      (void)sim::parse_nodes(text).has_value();
      break;
    case 14:
      (void)sim::parse_quotas(text, {}).has_value();
      break;
    default:
      (void)controllers::batchjob::parse_indexes(text);
      break;
  }
  return 0;
}
