#include "apiserver/registry/bootstrap.h"

#include <fmt/ranges.h>

#include <array>
#include <set>

#include "apiserver/auth/rbac.h"
#include "apiserver/registry/strategy.h"
#include "apiserver/registry/writer.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/crd/crd.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "kube/resources.h"

namespace muster::apiserver {
namespace {

/// It showed every Framework, environments included, to every service account.
constexpr std::array<std::string_view, 1> kDroppedBindings = {"muster-framework-reader"};

struct Pending {
  std::size_t left = 0;
  std::optional<Error> failure;
  std::unique_ptr<Signal> done;
};

Task<void> create_one(Core& core,
                      ResourcePtr resource,
                      std::string ns,
                      json::Value object,
                      std::shared_ptr<Pending> pending) {
  const Gate::Pass pass(core.gate);
  const User self{.name = "system:apiserver", .groups = {"system:masters"}};
  WriteOptions options;
  options.manager = "kube-apiserver";
  apply_defaults(*resource, object);
  const std::string name(kube::name_of(object));
  const auto made =
      co_await core.writer->create(resource, ns, std::move(object), options, self, nullptr);
  if (!made && made.error().code != Code::kAlreadyExists) {
    log::error(
        "apiserver", "cannot create {} {}: {}", resource->info.plural, name, made.error().message);
    pending->failure = made.error();
  }
  if (--pending->left == 0) pending->done->notify();
}

/// Creates what is absent, all at once so that they share one commit.
Task<Result<void>> ensure(Core& core, std::vector<std::pair<std::string, json::Value>> objects) {
  const auto pending = std::make_shared<Pending>();
  pending->done = core.env.make_signal();
  std::vector<Task<void>> tasks;
  for (auto& [ns, object] : objects) {
    const ResourcePtr resource = core.resources.find_kind(kube::gvk_of(object));
    MUSTER_CHECK(resource != nullptr, json::dump(object).substr(0, 200));
    if (core.find(*resource, ns, kube::name_of(object))) continue;
    tasks.push_back(create_one(core, resource, ns, std::move(object), pending));
  }
  if (tasks.empty()) co_return Result<void>();
  pending->left = tasks.size();
  for (Task<void>& task : tasks) core.env.spawn(std::move(task));
  co_await pending->done->wait(Duration::zero());
  if (pending->failure) co_return fail(*pending->failure);
  co_return Result<void>();
}

/// Bindings of ours that grant another role than they do in this release, as Kubernetes does it: a
/// binding's role cannot be changed, so they are removed and made anew. Whoever wants to keep theirs
/// says so with the annotation rbac.authorization.kubernetes.io/autoupdate: "false".
Task<Result<void>> remove_outdated(Core& core,
                                   const std::vector<std::pair<std::string, json::Value>>& ours) {
  for (const auto& [ns, wanted] : ours) {
    if (json::at(wanted, "roleRef").is_null()) continue;
    const ResourcePtr resource = core.resources.find_kind(kube::gvk_of(wanted));
    const std::string name(kube::name_of(wanted));
    const StoredPtr stored = core.find(*resource, ns, name);
    if (!stored || json::string_at(stored->object, "roleRef", "name") ==
                       json::string_at(wanted, "roleRef", "name"))
      continue;
    if (kube::annotation(stored->object, kube::names::kubernetes::kAutoUpdate) != "true") continue;
    log::info("apiserver",
              "ClusterRoleBinding {} grants {} from now on, no longer {}",
              name,
              json::string_at(wanted, "roleRef", "name"),
              json::string_at(stored->object, "roleRef", "name"));
    const auto removed = co_await core.writer->remove(resource, ns, name, {});
    if (!removed) co_return fail(removed.error());
  }
  co_return Result<void>();
}

/// What older releases bound and this one does not; the same annotation keeps it.
Task<Result<void>> remove_dropped(Core& core) {
  const ResourcePtr bindings =
      core.resources.find_kind({kube::resources::kRoles.group, "v1", "ClusterRoleBinding"});
  for (const std::string_view name : kDroppedBindings) {
    const StoredPtr stored = core.find(*bindings, "", name);
    if (!stored ||
        kube::annotation(stored->object, kube::names::kubernetes::kAutoUpdate) == "false")
      continue;
    log::info("apiserver", "ClusterRoleBinding {} is no longer needed and removed", name);
    const auto removed = co_await core.writer->remove(bindings, "", std::string(name), {});
    if (!removed) co_return fail(removed.error());
  }
  co_return Result<void>();
}

json::Value priority_class(std::string_view name,
                           std::int64_t value,
                           std::string_view description) {
  return json::Value{{"kind", "PriorityClass"},
                     {"apiVersion", kube::resources::kPriorityClasses.api_version()},
                     {"metadata", {{"name", name}}},
                     {"value", value},
                     {"description", description}};
}

json::Value kubernetes_service() {
  return json::Value{
      {"kind", "Service"},
      {"apiVersion", "v1"},
      {"metadata",
       {{"name", "kubernetes"},
        {"labels", {{"component", "apiserver"}, {"provider", "kubernetes"}}}}},
      {"spec",
       {{"clusterIP", "10.96.0.1"},
        {"ports",
         json::Array{json::Value{
             {"name", "https"}, {"protocol", "TCP"}, {"port", 443}, {"targetPort", 6443}}}}}}};
}

// Which bundled definitions this data folder was given, a name a line. One that an administrator has
// removed stays away; one that is new in a release comes to folders that older releases made.
constexpr std::string_view kGivenNamespace = "kube-system";
constexpr std::string_view kGivenName = "muster-definitions";
constexpr std::string_view kGivenKey = "given";

json::Value given_map(std::string_view names) {
  return json::Value{{"kind", "ConfigMap"},
                     {"apiVersion", "v1"},
                     {"metadata", {{"name", kGivenName}}},
                     {"data", {{kGivenKey, names}}}};
}

std::set<std::string, std::less<>> definitions_given(Core& core) {
  const ResourcePtr maps = core.resources.find_kind({"", "v1", "ConfigMap"});
  const StoredPtr stored = core.find(*maps, kGivenNamespace, kGivenName);
  if (!stored) return {};
  const auto names = split_nonempty(json::string_at(stored->object, "data", kGivenKey), '\n');
  return {names.begin(), names.end()};
}

/// Writes down that every bundled definition was given.
Task<Result<void>> note_definitions(Core& core, const std::set<std::string, std::less<>>& before) {
  std::set<std::string, std::less<>> all = before;
  for (const json::Value& crd : kube::bundled_crds()) all.emplace(kube::name_of(crd));
  if (all == before) co_return Result<void>();
  const std::string names = fmt::format("{}\n", fmt::join(all, "\n"));
  if (before.empty()) {
    std::vector<std::pair<std::string, json::Value>> one;
    one.emplace_back(kGivenNamespace, given_map(names));
    co_return co_await ensure(core, std::move(one));
  }
  WriteOptions options;
  options.manager = "kube-apiserver";
  const auto updated = co_await core.writer->update(
      core.resources.find_kind({"", "v1", "ConfigMap"}),
      std::string(kGivenNamespace),
      std::string(kGivenName),
      [&](const json::Value& live) -> Result<json::Value> {
        json::Value next = live;
        next.get_object()["data"] = {{kGivenKey, names}};
        return next;
      },
      options);
  if (!updated) co_return fail(updated.error());
  co_return Result<void>();
}

}  // namespace

Task<Result<void>> bootstrap(Core& core) {
  std::vector<std::pair<std::string, json::Value>> objects;
  for (const std::string_view name : {"default", "kube-system", "kube-public", "kube-node-lease"}) {
    objects.emplace_back(
        "",
        json::Value{{"kind", "Namespace"}, {"apiVersion", "v1"}, {"metadata", {{"name", name}}}});
  }
  for (json::Value& role : default_roles()) objects.emplace_back("", std::move(role));
  objects.emplace_back(
      "",
      priority_class(
          "system-node-critical",
          2000001000,
          "Used for system critical pods that must not be moved from their current node."));
  objects.emplace_back(
      "",
      priority_class(
          "system-cluster-critical",
          2000000000,
          "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary."));
  const std::set<std::string, std::less<>> given = definitions_given(core);
  for (json::Value& crd : kube::bundled_crds()) {
    if (!given.contains(kube::name_of(crd))) objects.emplace_back("", std::move(crd));
  }
  const auto cleared = co_await remove_outdated(core, objects);
  if (!cleared) co_return cleared;
  const auto dropped = co_await remove_dropped(core);
  if (!dropped) co_return dropped;
  const auto made = co_await ensure(core, std::move(objects));
  if (!made) co_return made;
  const auto noted = co_await note_definitions(core, given);
  if (!noted) co_return noted;
  std::vector<std::pair<std::string, json::Value>> second;
  second.emplace_back("default", kubernetes_service());
  co_return co_await ensure(core, std::move(second));
}

Task<void> publish_endpoint(Core& core) {
  const std::string address = core.options.address == "0.0.0.0" || core.options.address == "::"
                                  ? "127.0.0.1"
                                  : core.options.address;
  json::Value subset = {
      {"addresses", json::Array{json::Value{{"ip", address}}}},
      {"ports",
       json::Array{
           json::Value{{"name", "https"}, {"port", core.options.port}, {"protocol", "TCP"}}}}};
  json::Value endpoints = {
      {"kind", "Endpoints"},
      {"apiVersion", "v1"},
      {"metadata",
       {{"name", "kubernetes"}, {"labels", {{kube::names::kubernetes::kSkipMirror, "true"}}}}},
      {"subsets", json::Array{subset}}};
  json::Value slice = {{"kind", "EndpointSlice"},
                       {"apiVersion", kube::resources::kEndpointSlices.api_version()},
                       {"metadata",
                        {{"name", "kubernetes"},
                         {"labels", {{kube::names::kubernetes::kServiceName, "kubernetes"}}}}},
                       {"addressType", "IPv4"},
                       {"endpoints",
                        json::Array{json::Value{{"addresses", json::Array{json::Value(address)}},
                                                {"conditions", {{"ready", true}}}}}},
                       {"ports",
                        json::Array{json::Value{
                            {"name", "https"}, {"port", core.options.port}, {"protocol", "TCP"}}}}};
  for (json::Value* object : {&endpoints, &slice}) {
    const ResourcePtr resource = core.resources.find_kind(kube::gvk_of(*object));
    if (core.find(*resource, "default", "kubernetes")) {
      WriteOptions options;
      options.subresource = "internal";
      const std::string_view member = object == &endpoints ? "subsets" : "ports";
      const auto updated = co_await core.writer->update(
          resource,
          "default",
          "kubernetes",
          [&](const json::Value& live) -> Result<json::Value> {
            json::Value next = live;
            next.get_object()[member] = json::at(*object, member);
            return next;
          },
          options);
      if (!updated)
        log::warn("apiserver", "endpoints of the kubernetes service: {}", updated.error().message);
      continue;
    }
    std::vector<std::pair<std::string, json::Value>> one;
    one.emplace_back("default", std::move(*object));
    const auto made = co_await ensure(core, std::move(one));
    if (!made)
      log::warn("apiserver", "endpoints of the kubernetes service: {}", made.error().message);
  }
}

}  // namespace muster::apiserver
