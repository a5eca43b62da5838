#include "scheduler/live_cells.h"

#include <fmt/core.h>

#include <optional>

#include "base/log.h"
#include "hived/config.h"
#include "hived/config_map.h"
#include "kube/meta.h"

namespace muster::scheduler {

using client::resources::kConfigMaps;

namespace {

client::ListOptions config_map_options() {
  client::ListOptions options;
  options.ns = hived::kConfigMapNamespace;
  options.field_selector = fmt::format("metadata.name={}", hived::kConfigMapName);
  return options;
}

bool is_stopped(const json::Value& map) {
  return json::string_at(map, "data", hived::kConfigMapStopped) == "true";
}

/// The ConfigMap; null when there is none.
Task<Result<json::Value>> read_map(client::Client& client) {
  // A list of one: the right to list is needed for the watch anyway, a right to get would be
  // another.
  const auto found = co_await client.list(kConfigMaps, config_map_options());
  if (!found) co_return fail(found.error());
  if (found->items.empty()) co_return json::Value();
  co_return found->items.front();
}

}  // namespace

Task<Result<void>> write_cells(client::Client& client, std::string text) {
  json::Value map = json::Object{};
  json::make(map, {"metadata", "name"}) = hived::kConfigMapName;
  json::make(map, {"metadata", "namespace"}) = hived::kConfigMapNamespace;
  json::make(map, {"data", hived::kConfigMapKey}) = text;
  const auto made = co_await client.create(kConfigMaps, hived::kConfigMapNamespace, map);
  if (made) co_return Result<void>();
  if (made.error().code != Code::kAlreadyExists) co_return fail(made.error());
  json::remove(map, {"metadata"});
  const auto patched = co_await client.patch(kConfigMaps,
                                             hived::kConfigMapNamespace,
                                             hived::kConfigMapName,
                                             "",
                                             client::PatchType::kMerge,
                                             std::move(map));
  if (!patched) co_return fail(patched.error());
  co_return Result<void>();
}

Task<Result<std::string>> read_cells(client::Client& client, Options& options) {
  const auto found = co_await read_map(client);
  if (!found) co_return fail(found.error());
  options.cells_stopped = is_stopped(*found);
  std::string text = json::text_at(*found, "data", hived::kConfigMapKey);
  if (text.empty()) co_return text;
  auto config = hived::parse_config(text);
  if (!config) {
    co_return fail(Code::kInvalid,
                   fmt::format("ConfigMap {}/{}: {}; start with --hived-config FILE to replace it",
                               hived::kConfigMapNamespace,
                               hived::kConfigMapName,
                               config.error().message));
  }
  for (const std::string& warning : config->warnings) log::warn("hived", "{}", warning);
  options.cells = std::move(config->cells);
  co_return text;
}

LiveCells::LiveCells(Env& env,
                     client::Client& client,
                     client::Informers& informers,
                     Scheduler& scheduler,
                     std::string text,
                     const std::string& source)
    : informers_(informers),
      scheduler_(scheduler),
      text_(std::move(text)),
      events_(client::make_event_recorder(env, client, source, "")) {}

void LiveCells::start() {
  informers_.get(kConfigMaps, config_map_options())
      .add_handlers({[this](const client::ObjectPtr&, const client::ObjectPtr& now) {
                       // Cells outlive their ConfigMap: deleting it must not free what was
                       // promised.
                       if (now && !stopped_) changed(*now);
                     },
                     [] {}});
  informers_.start_all();
}

Task<void> LiveCells::stop() {
  stopped_ = true;
  co_await events_->flush();
}

void LiveCells::changed(const json::Value& map) {
  scheduler_.stop_cells(is_stopped(map));
  const json::Value found = json::at(map, "data", hived::kConfigMapKey);
  if (found.is_string() && json::text(found) == text_) return;
  json::Value about = map;
  json::make(about, {"apiVersion"}) = "v1";
  json::make(about, {"kind"}) = "ConfigMap";
  const auto refuse = [&](const std::string& why) {
    log::warn("hived",
              "ConfigMap {}/{} is not taken over: {}",
              hived::kConfigMapNamespace,
              hived::kConfigMapName,
              why);
    events_->record(about, "Warning", "CellsRefused", why + "; the cells stay as they were");
  };
  if (!found.is_string()) {
    refuse(fmt::format("wanted HiveD's configuration under data[\"{}\"], found none",
                       hived::kConfigMapKey));
    return;
  }
  text_ = json::text(found);
  const auto config = hived::parse_config(text_);
  if (!config) {
    refuse(config.error().message);
    return;
  }
  const auto done = scheduler_.reconfigure_cells(config->cells);
  if (!done) {
    refuse(done.error().message);
    return;
  }
  for (const std::string& warning : config->warnings) log::warn("hived", "{}", warning);
  log::info("hived", "cells reconfigured");
  events_->record(about, "Normal", "CellsReconfigured", "The scheduler works with the new cells");
}

}  // namespace muster::scheduler
