/// Deletion: preconditions, grace periods of pods, finalizers for the chosen propagation, then
/// removal.
#include <fmt/core.h>

#include <algorithm>

#include "apiserver/registry/finalizers.h"
#include "apiserver/registry/services.h"
#include "apiserver/registry/writer.h"
#include "base/strings.h"
#include "kube/kinds/pod.h"
#include "kube/names.h"

namespace muster::apiserver {
namespace {

/// Seconds the pod has to stop; zero when nothing runs.
std::int64_t pod_grace(const json::Value& pod, const DeleteRequest& request) {
  if (json::string_at(pod, "spec", "nodeName").empty() || kube::pod_finished(pod)) return 0;
  std::int64_t grace =
      request.grace_s ? *request.grace_s
                      : json::as_int(json::at(pod, "spec", "terminationGracePeriodSeconds"), 30);
  return grace < 0 ? 1 : grace;
}

Result<void> check_preconditions(const Resource& served,
                                 const Stored& live,
                                 const DeleteRequest& request) {
  if (request.uid.empty() && request.resource_version.empty()) return {};
  Resource resource = served;  // these two messages name the kind, not the plural
  resource.info.plural = served.info.kind;
  const std::string_view uid = kube::uid_of(live.object);
  if (!request.uid.empty() && request.uid != uid) {
    return fail(conflict(
        resource,
        live.name(),
        fmt::format(
            "the UID in the precondition ({}) does not match the UID in record ({}). The object might have been deleted and then recreated",
            request.uid,
            uid)));
  }
  const std::string revision = std::to_string(live.revision);
  if (!request.resource_version.empty() && request.resource_version != revision) {
    return fail(conflict(
        resource,
        live.name(),
        fmt::format(
            "the ResourceVersion in the precondition ({}) does not match the ResourceVersion in record ({}). The object might have been modified",
            request.resource_version,
            revision)));
  }
  return {};
}

/// Default propagation of kinds that predate the collector.
std::string propagation_of(const Resource& resource, const DeleteRequest& request) {
  if (!request.propagation.empty()) return request.propagation;
  if (resource.storage == "jobs.batch" || resource.storage == "replicationcontrollers")
    return "Orphan";
  return "Background";
}

void bump_generation(json::Value& object) {
  const std::int64_t generation = json::int_at(object, "metadata", "generation");
  if (generation > 0) json::make(object, {"metadata", "generation"}) = generation + 1;
}

}  // namespace

/// One piece: finalizers, grace and what a second request may still change depend on each other, and
/// all of it happens under one lock.
Task<Result<Deleted>> Writer::remove(ResourcePtr resource,
                                     std::string ns,
                                     std::string name,
                                     DeleteRequest request) {
  Collection& collection = core_.collection(*resource);
  const std::string key = resource->key(ns, name);
  KeyLock lock = core_.image.try_lock(collection, key);
  if (!lock) lock = co_await core_.image.lock(collection, key);
  if (const Error* failure = core_.store.failure()) co_return fail(*failure);
  const StoredPtr current = collection.find(key);
  if (!current) co_return fail(not_found(*resource, name));
  const auto agreed = check_preconditions(*resource, *current, request);
  if (!agreed) co_return fail(agreed.error());
  if (request.check) {
    const auto allowed = request.check(current->object);
    if (!allowed) co_return fail(allowed.error());
  }

  const bool is_pod = resource->storage == "pods";
  const bool is_namespace = resource->storage == "namespaces";
  const std::int64_t grace = is_pod ? pod_grace(current->object, request) : 0;
  const Time now = core_.env.now();
  const bool already = kube::is_deleting(current->object);
  json::Value next = current->object;
  const std::string propagation = propagation_of(*resource, request);
  if (!is_namespace) {
    // Naming another policy later changes the finalizers; naming none leaves them.
    if (!already || !request.propagation.empty()) {
      set_finalizer(next,
                    kube::names::kubernetes::kOrphan,
                    propagation == "Orphan" && (!request.propagation.empty() || !already));
      set_finalizer(
          next, kube::names::kubernetes::kForegroundDeletion, propagation == "Foreground");
    }
  }

  if (!already) {
    json::make(next, {"metadata", "deletionTimestamp"}) =
        format_time(now + std::chrono::seconds(grace));
    if (!is_namespace) json::make(next, {"metadata", "deletionGracePeriodSeconds"}) = grace;
    bump_generation(next);
    if (is_namespace) json::make(next, {"status", "phase"}) = "Terminating";
  } else if (is_pod) {
    // A second delete can only shorten the wait.
    const std::int64_t left = json::int_at(next, "metadata", "deletionGracePeriodSeconds");
    if (grace < left && (request.grace_s || grace == 0)) {
      const Time set = kube::deletion_time(next) - std::chrono::seconds(left);
      json::make(next, {"metadata", "deletionTimestamp"}) =
          format_time(set + std::chrono::seconds(grace));
      json::make(next, {"metadata", "deletionGracePeriodSeconds"}) = grace;
    }
  }

  Deleted result;
  result.gone = may_go(next);
  if (result.gone && !is_pod && !already) {
    // It goes at once, as it is: only pods know a last state that says so.
    json::remove(next, {"metadata", "deletionTimestamp"});
    json::remove(next, {"metadata", "deletionGracePeriodSeconds"});
    if (const json::Value& generation = json::at(current->object, "metadata", "generation");
        !generation.is_null())
      json::make(next, {"metadata", "generation"}) = generation;
  }
  if (request.dry_run) {
    result.object = current;
    co_return result;
  }
  if (result.gone) {
    auto gone = co_await core_.image.erase(collection, key, std::move(next));
    if (!gone) co_return fail(gone.error());
    core_.services->release(*resource, (*gone)->object);
    result.object = *gone;
    co_return result;
  }
  if (json::equal(next, current->object)) {
    result.object = current;
    co_return result;
  }
  auto stored = co_await core_.image.put(collection, key, std::move(next));
  if (!stored) co_return fail(stored.error());
  result.object = *stored;
  co_return result;
}

}  // namespace muster::apiserver
