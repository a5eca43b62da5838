#include "main/hived_live.h"

#include <fmt/core.h>

#include "base/log.h"
#include "hived/config.h"
#include "kube/meta.h"

namespace muster {

using client::resources::kConfigMaps;

namespace {

client::ListOptions config_map_options() {
  client::ListOptions options;
  options.ns = kHivedNamespace;
  options.field_selector = fmt::format("metadata.name={}", kHivedConfigMap);
  return options;
}

}  // namespace

Task<Result<std::optional<std::string>>> read_hived_config_map(client::Client& client) {
  // A list of one: the right to list is needed for the watch anyway, a right to get would be
  // another.
  const auto found = co_await client.list(kConfigMaps, config_map_options());
  if (!found) co_return fail(found.error());
  if (found->items.empty()) co_return std::optional<std::string>();
  const json::Value& text = json::at(found->items.front(), "data", kHivedKey);
  if (!text.is_string()) co_return std::optional<std::string>();
  co_return std::optional<std::string>(json::text(text));
}

Task<Result<void>> write_hived_config_map(client::Client& client, std::string text) {
  json::Value map = json::Object{};
  json::make(map, {"metadata", "name"}) = kHivedConfigMap;
  json::make(map, {"metadata", "namespace"}) = kHivedNamespace;
  json::make(map, {"data", kHivedKey}) = text;
  const auto made = co_await client.create(kConfigMaps, kHivedNamespace, map);
  if (made) co_return Result<void>();
  if (made.error().code != Code::kAlreadyExists) co_return fail(made.error());
  json::remove(map, {"metadata"});
  const auto patched = co_await client.patch(
      kConfigMaps, kHivedNamespace, kHivedConfigMap, "", client::PatchType::kMerge, std::move(map));
  if (!patched) co_return fail(patched.error());
  co_return Result<void>();
}

Task<Result<std::string>> cells_of_cluster(client::Client& client, scheduler::Options& options) {
  const auto found = co_await read_hived_config_map(client);
  if (!found) co_return fail(found.error());
  if (!*found) co_return std::string();
  auto config = hived::parse_config(**found);
  if (!config) {
    co_return fail(Code::kInvalid,
                   fmt::format("ConfigMap {}/{}: {}; start with --hived-config FILE to replace it",
                               kHivedNamespace,
                               kHivedConfigMap,
                               config.error().message));
  }
  for (const std::string& warning : config->warnings) log::warn("hived", "{}", warning);
  options.cells = std::move(config->cells);
  co_return **found;
}

HivedLive::HivedLive(Env& env,
                     client::Client& client,
                     client::Informers& informers,
                     scheduler::Scheduler& scheduler,
                     std::string text,
                     const std::string& source)
    : informers_(informers),
      scheduler_(scheduler),
      text_(std::move(text)),
      events_(client::make_event_recorder(env, client, source, "")) {}

void HivedLive::start() {
  informers_.get(kConfigMaps, config_map_options())
      .add_handlers({[this](const client::ObjectPtr&, const client::ObjectPtr& now) {
                       // Cells outlive their ConfigMap: deleting it must not free what was
                       // promised.
                       if (now && !stopped_) changed(*now);
                     },
                     [] {}});
  informers_.start_all();
}

Task<void> HivedLive::stop() {
  stopped_ = true;
  co_await events_->flush();
}

void HivedLive::changed(const json::Value& map) {
  const json::Value found = json::at(map, "data", kHivedKey);
  if (found.is_string() && json::text(found) == text_) return;
  json::Value about = map;
  json::make(about, {"apiVersion"}) = "v1";
  json::make(about, {"kind"}) = "ConfigMap";
  const auto refuse = [&](const std::string& why) {
    log::warn(
        "hived", "ConfigMap {}/{} is not taken over: {}", kHivedNamespace, kHivedConfigMap, why);
    events_->record(about, "Warning", "CellsRefused", why + "; the cells stay as they were");
  };
  if (!found.is_string()) {
    refuse(fmt::format("wanted HiveD's configuration under data[\"{}\"], found none", kHivedKey));
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

}  // namespace muster
