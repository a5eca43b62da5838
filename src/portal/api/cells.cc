/// HiveD's cells: who sits where, the configuration, what a new one would do, and former ones.
#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "hived/annotations.h"
#include "hived/config.h"
#include "hived/config_map.h"
#include "hived/tree.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"
#include "portal/api/api.h"
#include "portal/api/versions.h"

namespace muster::portal {
namespace {

constexpr const char* kVersionsName = "muster-hived-versions";

struct Present {
  std::string text, version;
  bool there = false;
};

Task<Result<Present>> present_config(World& world) {
  Present present;
  const auto map = co_await world.kube.own().get(
      client::resources::kConfigMaps, hived::kConfigMapNamespace, hived::kConfigMapName);
  if (!map && map.error().code != Code::kNotFound) co_return fail(map.error());
  if (!map) co_return present;
  present.text = json::text_at(*map, "data", hived::kConfigMapKey);
  present.version = kube::resource_version_of(*map);
  present.there = !present.text.empty();
  co_return present;
}

struct Seen {
  std::vector<std::pair<std::string, bool>> nodes;
  std::vector<hived::RunningPod> pods;
};

/// Bound pods that carry their cells, oldest first.
Seen look(World& world) {
  Seen seen;
  for (const auto& [name, node] : world.nodes.all())
    seen.nodes.emplace_back(name, node.state == NodeState::kReady);
  std::vector<client::ObjectPtr> pods;
  for (const auto& [key, pod] : world.informers.get(client::resources::kPods).objects()) {
    if (!kube::pod_finished(*pod) && !json::string_at(*pod, "spec", "nodeName").empty())
      pods.push_back(pod);
  }
  std::stable_sort(
      pods.begin(), pods.end(), [](const client::ObjectPtr& a, const client::ObjectPtr& b) {
        return kube::creation_time(*a) < kube::creation_time(*b);
      });
  for (const client::ObjectPtr& pod : pods) {
    const std::string ns(kube::namespace_of(*pod)), name(kube::name_of(*pod));
    const auto spec =
        hived::parse_scheduling_spec(kube::annotation(*pod, hived::kSchedulingSpec), ns, name);
    const auto bind = hived::parse_bind_info(kube::annotation(*pod, hived::kBindInfo));
    if (spec && bind)
      seen.pods.push_back({{std::string(kube::uid_of(*pod)), ns + "/" + name}, *spec, *bind});
  }
  return seen;
}

std::string_view effect_name(hived::GroupChange::Effect effect) {
  switch (effect) {
    case hived::GroupChange::Effect::kKept:
      return "kept";
    case hived::GroupChange::Effect::kPromoted:
      return "promoted";
    case hived::GroupChange::Effect::kDowngraded:
      return "downgraded";
    case hived::GroupChange::Effect::kCellsLost:
      return "cells-lost";
  }
  return "";
}

json::Array texts(const std::vector<std::string>& list) {
  json::Array array;
  for (const std::string& one : list) array.push_back(json::Value(one));
  return array;
}

json::Value check_value(World& world, const Present& present, const std::string& text) {
  const auto fresh = hived::parse_config(text);
  if (!fresh) return refused_text(fresh.error().message);
  if (const auto cells = hived::check_cells(*fresh); !cells)
    return refused_text(cells.error().message);
  json::Array changes;
  std::vector<std::string> facts, warnings = fresh->warnings;
  const auto old_config = present.there ? hived::parse_config(present.text)
                                        : Result<hived::Config>(fail(Code::kNotFound, ""));
  if (old_config) {
    const auto report = hived::check(*old_config, *fresh, look(world).pods);
    if (!report) return refused_text(report.error().message);
    for (const hived::GroupChange& change : report->changes) {
      const JobIndex::Entry* job = world.jobs.of_group(change.group);
      changes.push_back(
          {{"group", change.group},
           {"job", job == nullptr ? json::Value(nullptr) : json::Value(job->facts.id)},
           {"user", job == nullptr ? "" : job->facts.user},
           {"vc", change.vc},
           {"effect", effect_name(change.effect)},
           {"text", change.text}});
    }
    facts = report->facts;
    warnings = report->warnings;
  } else {
    facts.push_back(hived::describe(*fresh));
  }
  return {{"ok", true},
          {"changes", std::move(changes)},
          {"facts", texts(facts)},
          {"warnings", texts(warnings)}};
}

Task<void> put_config(ApiWorld& api, ApiCall& call, const Present& present) {
  World& world = api.world;
  const auto wanted = co_await text_to_write(
      call, {present.version, present.text}, "configuration", [&](const std::string& text) {
        return check_value(world, present, text);
      });
  if (!wanted) co_return;
  const std::string& text = *wanted;
  json::Value map = json::Object{};
  json::make(map, {"apiVersion"}) = "v1";
  json::make(map, {"kind"}) = "ConfigMap";
  json::make(map, {"metadata", "name"}) = hived::kConfigMapName;
  json::make(map, {"metadata", "namespace"}) = hived::kConfigMapNamespace;
  if (!present.version.empty()) json::make(map, {"metadata", "resourceVersion"}) = present.version;
  json::make(map, {"data", hived::kConfigMapKey}) = text;
  const std::string root =
      fmt::format("/api/v1/namespaces/{}/configmaps", hived::kConfigMapNamespace);
  const bool fresh = present.version.empty();
  // In their name: their rights decide, and the audit knows who it was.
  auto done = co_await world.kube.call_as(call.visitor.user,
                                          fresh ? "POST" : "PUT",
                                          fresh ? root : root + "/" + hived::kConfigMapName,
                                          std::move(map));
  if (!done) {
    co_await answer_error(call.writer, done.error());
    co_return;
  }
  const std::string version(kube::resource_version_of(*done));
  co_await keep_version(world, kVersionsName, call.visitor.user, {version, text});
  co_await answer_json(call.writer,
                       {{"text", text}, {"resourceVersion", version}, {"present", true}});
}

Task<void> give_tree(ApiWorld& api, ApiCall& call, const Present& present) {
  if (!present.there) {
    co_await answer(
        call.writer,
        error_answer(
            404, "NotFound", "this cluster has no cells: it was started without --hived-config"));
    co_return;
  }
  const auto config = hived::parse_config(present.text);
  if (!config) {
    co_await answer_error(call.writer, config.error());
    co_return;
  }
  const Seen seen = look(api.world);
  const auto occupied = hived::occupy(*config, seen.nodes, seen.pods, api.world.env.now());
  if (!occupied) {
    co_await answer_error(call.writer, occupied.error());
    co_return;
  }
  json::Value tree = hived::tree_json(occupied->cells);
  if (const std::string_view vc = call.target.get("vc"); !vc.empty()) {
    json::Value cells = json::at(tree, "virtualClusters", vc);
    tree = json::Value{{"virtualClusters", json::Object{{vc, std::move(cells)}}}};
  }
  co_await answer_json(call.writer, std::move(tree));
}

}  // namespace

Task<void> serve_hived(ApiWorld api, ApiCall call) {
  co_await api.world.jobs.wait_ready();
  const auto present = co_await present_config(api.world);
  if (!present) {
    co_await answer_error(call.writer, present.error());
    co_return;
  }
  const std::string& method = call.request.method;
  if (call.path[0] == "cells" && method == "GET") {
    co_await give_tree(api, call, *present);
    co_return;
  }
  if (!call.visitor.user.admin) {
    co_await answer(
        call.writer,
        error_answer(403,
                     "Forbidden",
                     "only administrators may see and change the scheduler's configuration"));
    co_return;
  }
  if (call.path[0] == "hived:check" && method == "POST") {
    const auto body = json::parse(call.request.body);
    if (!body || !json::at(*body, "text").is_string())
      co_await answer(call.writer, error_answer(400, "BadRequest", "wanted {text}"));
    else
      co_await answer_json(call.writer,
                           check_value(api.world, *present, json::text_at(*body, "text")));
  } else if (call.path.size() == 2 && call.path[1] == "versions" && method == "GET") {
    json::Array versions = co_await former_versions(api.world, kVersionsName);
    co_await answer_json(call.writer, std::move(versions));
  } else if (call.path.size() == 1 && method == "GET") {
    co_await answer_json(call.writer,
                         {{"text", present->text},
                          {"resourceVersion", present->version},
                          {"present", present->there}});
  } else if (call.path.size() == 1 && method == "PUT") {
    co_await put_config(api, call, *present);
  } else {
    co_await answer(
        call.writer,
        error_answer(404,
                     "NotFound",
                     "there are GET and PUT hived, POST hived:check and GET hived/versions"));
  }
}

}  // namespace muster::portal
