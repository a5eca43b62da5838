#include "apiserver/housekeeping/namespaces.h"

#include <fmt/core.h>

#include "apiserver/registry/writer.h"
#include "apiserver/rest/batch.h"
#include "base/log.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::apiserver {

Result<Namespaces::Entry> Namespaces::enter(const Resource& resource,
                                            const std::string& ns,
                                            std::string_view name) {
  if (!resource.info.namespaced) return Entry();
  const StoredPtr found = core_.image.collection("namespaces").find(ns);
  if (!found) {
    const ResourcePtr namespaces = core_.resources.get("", "v1", "namespaces");
    return fail(not_found(*namespaces, ns));
  }
  if (kube::is_deleting(found->object)) {
    Error error = forbidden(
        resource,
        name,
        fmt::format("unable to create new content in namespace {} because it is being terminated",
                    ns));
    error.causes.push_back({"NamespaceTerminating",
                            fmt::format("namespace {} is being terminated", ns),
                            "metadata.namespace"});
    return fail(std::move(error));
  }
  return Entry(this, ns);
}

Task<void> Namespaces::ensure_contents(std::string ns) {
  const User self{.name = "system:kube-controller-manager", .groups = {"system:masters"}};
  WriteOptions options;
  options.manager = std::string(kOwnManager);
  if (!core_.image.collection("serviceaccounts").find(ns + "/default")) {
    json::Value account = {
        {"kind", "ServiceAccount"}, {"apiVersion", "v1"}, {"metadata", {{"name", "default"}}}};
    const ResourcePtr resource = core_.resources.get("", "v1", "serviceaccounts");
    const auto made =
        co_await core_.writer->create(resource, ns, std::move(account), options, self, nullptr);
    if (!made && made.error().code != Code::kAlreadyExists &&
        made.error().code != Code::kForbidden) {
      log::warn(
          "apiserver", "namespace {}: no default ServiceAccount: {}", ns, made.error().message);
    }
  }
  if (!core_.image.collection("configmaps").find(ns + "/kube-root-ca.crt")) {
    json::Value map = {
        {"kind", "ConfigMap"},
        {"apiVersion", "v1"},
        {"metadata",
         {{"name", "kube-root-ca.crt"},
          {"annotations",
           {{kube::names::kubernetes::kDescription,
             "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or "
             "kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."}}}}},
        {"data", {{"ca.crt", core_.options.ca_pem}}}};
    const ResourcePtr resource = core_.resources.get("", "v1", "configmaps");
    const auto made =
        co_await core_.writer->create(resource, ns, std::move(map), options, self, nullptr);
    if (!made && made.error().code != Code::kAlreadyExists &&
        made.error().code != Code::kForbidden) {
      log::warn("apiserver", "namespace {}: no kube-root-ca.crt: {}", ns, made.error().message);
    }
  }
}

Task<void> Namespaces::provision(std::string ns) {
  const Gate::Pass pass(core_.gate);
  co_await ensure_contents(ns);
}

void Namespaces::observe(Collection& collection, const Change& change) {
  if (collection.storage() == "namespaces") {
    const std::string ns = change.after->key;
    if (change.deleted) return;
    if (!kube::is_deleting(change.after->object)) {
      if (!change.before) core_.env.spawn(provision(ns));
    } else if (terminating_.insert(ns).second) {
      core_.env.spawn(terminate(ns));
    }
    return;
  }
  if (change.deleted) {
    const std::string_view ns = change.after->ns();
    if (ns.empty()) return;
    // A provisioned object that somebody deleted comes back, as long as the namespace lives.
    const bool provisioned =
        (collection.storage() == "serviceaccounts" && change.after->name() == "default") ||
        (collection.storage() == "configmaps" && change.after->name() == "kube-root-ca.crt");
    const std::string name(ns);
    if (const auto waiting = waiting_.find(name); waiting != waiting_.end()) {
      waiting->second->notify();
    } else if (provisioned && core_.ready && !core_.gate.closed()) {
      const StoredPtr owner = core_.image.collection("namespaces").find(name);
      if (owner && !kube::is_deleting(owner->object)) core_.env.spawn(provision(name));
    }
  }
}

Task<void> Namespaces::resume() {
  const auto objects = core_.image.collection("namespaces").objects();
  for (const auto& [ns, stored] : objects) {
    if (!kube::is_deleting(stored->object)) {
      co_await ensure_contents(ns);
    } else if (terminating_.insert(ns).second) {
      core_.env.spawn(terminate(ns));
    }
  }
}

Task<std::size_t> Namespaces::delete_contents(const std::string& ns) {
  std::size_t remaining = 0;
  for (const ResourcePtr& resource : core_.resources.stored()) {
    if (!resource->info.namespaced) continue;
    std::vector<StoredPtr> objects;
    core_.collection(*resource).each_in(ns, [&](const StoredPtr& stored) {
      if (kube::is_deleting(stored->object)) {
        ++remaining;
      } else {
        objects.push_back(stored);
      }
    });
    if (objects.empty()) continue;
    DeleteRequest request;
    request.propagation = "Background";
    const BatchResult removed = co_await remove_all(core_, resource, std::move(objects), request);
    remaining += removed.remaining;
  }
  co_return remaining;
}

/// What is still in the namespace, in the words of its conditions; empty: nothing.
Namespaces::Remains Namespaces::remains_of(const std::string& ns) {
  std::map<std::string, std::pair<std::size_t, std::set<std::string>>> held;
  for (const ResourcePtr& each : core_.resources.stored()) {
    if (!each->info.namespaced) continue;
    core_.collection(*each).each_in(ns, [&](const StoredPtr& stored) {
      auto& entry = held[each->group_resource() + "."];
      ++entry.first;
      for (const json::Value& finalizer : json::array_at(stored->object, "metadata", "finalizers"))
        entry.second.insert(json::text(finalizer));
    });
  }
  Remains out;
  std::map<std::string, std::size_t> by_finalizer;
  for (const auto& [what, entry] : held) {
    out.content += fmt::format(
        "{}{} has {} resource instances", out.content.empty() ? "" : ", ", what, entry.first);
    for (const std::string& finalizer : entry.second) by_finalizer[finalizer] += entry.first;
  }
  for (const auto& [finalizer, count] : by_finalizer)
    out.finalizers += fmt::format(
        "{}{} in {} resource instances", out.finalizers.empty() ? "" : ", ", finalizer, count);
  return out;
}

Task<void> Namespaces::report(const std::string& ns, std::size_t remaining) {
  const Remains remains = remains_of(ns);
  const bool content = remaining > 0, finalizers = !remains.finalizers.empty();
  const std::vector<kube::Condition> conditions = {
      {"NamespaceDeletionDiscoveryFailure",
       "False",
       "ResourcesDiscovered",
       "All resources successfully discovered"},
      {"NamespaceDeletionGroupVersionParsingFailure",
       "False",
       "ParsedGroupVersions",
       "All legacy kube types successfully parsed"},
      {"NamespaceDeletionContentFailure",
       "False",
       "ContentDeleted",
       "All content successfully deleted, may be waiting on finalization"},
      {"NamespaceContentRemaining",
       content ? "True" : "False",
       content ? "SomeResourcesRemain" : "ContentRemoved",
       content ? "Some resources are remaining: " + remains.content
               : "All content successfully removed"},
      {"NamespaceFinalizersRemaining",
       finalizers ? "True" : "False",
       finalizers ? "SomeFinalizersRemain" : "ContentHasNoFinalizers",
       finalizers ? "Some content in the namespace has finalizers remaining: " + remains.finalizers
                  : "All content-preserving finalizers finished"}};
  const Time now = core_.env.now();
  WriteOptions options;
  options.manager = std::string(kOwnManager);
  options.subresource = "internal";
  const auto written = co_await core_.writer->update(
      core_.resources.get("", "v1", "namespaces"),
      "",
      ns,
      [&](const json::Value& live) -> Result<json::Value> {
        json::Value next = live;
        for (const auto& condition : conditions) kube::set_condition(next, condition, now);
        return next;
      },
      options);
  if (!written)
    log::warn("apiserver", "namespace {}: conditions not written: {}", ns, written.error().message);
}

Task<void> Namespaces::terminate(std::string ns) {
  const Gate::Pass pass(core_.gate);
  const auto signal = core_.env.make_signal();
  waiting_[ns] = signal.get();
  const Gate::Sleeper sleeper(core_.gate, *signal);
  bool reported = false;
  while (!core_.gate.closed()) {
    const std::size_t remaining = co_await delete_contents(ns);
    if (remaining == 0 && !creating_.contains(ns)) {
      if (reported) co_await report(ns, 0);
      break;
    }
    co_await report(ns, remaining);
    reported = true;
    co_await signal->wait(std::chrono::seconds(2));
  }
  waiting_.erase(ns);
  terminating_.erase(ns);
  if (core_.gate.closed()) co_return;
  WriteOptions options;
  options.subresource = "finalize";
  const ResourcePtr resource = core_.resources.get("", "v1", "namespaces");
  const auto done = co_await core_.writer->update(
      resource,
      "",
      ns,
      [](const json::Value& live) -> Result<json::Value> {
        json::Value next = live;
        json::Array left;
        for (const json::Value& finalizer : json::array_at(live, "spec", "finalizers")) {
          if (json::as_string(finalizer) != "kubernetes") left.push_back(finalizer);
        }
        json::make(next, {"spec", "finalizers"}) = std::move(left);
        return next;
      },
      options);
  if (!done && done.error().code != Code::kNotFound)
    log::warn("apiserver", "namespace {} not finalized: {}", ns, done.error().message);
}

}  // namespace muster::apiserver
