#include "apiserver/registry/writer.h"

#include <fmt/core.h>

#include <algorithm>

#include "apiserver/auth/escalation.h"
#include "apiserver/housekeeping/namespaces.h"
#include "apiserver/registry/admission.h"
#include "apiserver/registry/guard.h"
#include "apiserver/registry/quota.h"
#include "apiserver/registry/services.h"
#include "apiserver/registry/strategy.h"
#include "apiserver/registry/webhooks.h"
#include "apiserver/rest/convert.h"
#include "base/strings.h"
#include "kube/apply/apply.h"
#include "kube/apply/managed.h"
#include "kube/kinds/validate.h"
#include "net/tls/tls.h"

namespace muster::apiserver {
namespace {

constexpr int kNameAttempts = 8;

kube::ApplyRequest apply_request(const Resource& resource, const WriteOptions& options, Time now) {
  kube::ApplyRequest request;
  request.manager = options.manager;
  request.api_version = resource.api_version();
  request.subresource =
      options.subresource == "status" || options.subresource == "scale" ? options.subresource : "";
  request.now = now;
  return request;
}

/// Subresources that change what an ordinary update may not, after checks of their own.
bool unchecked(std::string_view subresource) {
  return subresource == "binding" || subresource == "finalize" || subresource == "resize" ||
         subresource == "ephemeralcontainers" || subresource == "internal";
}

/// Writes of the server itself, and a binding, which webhooks know as a creation of its own.
bool internal(std::string_view subresource) {
  return subresource == "binding" || subresource == "finalize" || subresource == "internal";
}

Reviewed review_of(const Resource& resource,
                   const std::string& ns,
                   const std::string& name,
                   const json::Value& live,
                   const WriteOptions& options) {
  return {.resource = resource,
          .ns = ns,
          .name = name,
          .operation = "UPDATE",
          .subresource = options.subresource,
          .old_object = &live,
          .user = *options.user,
          .dry_run = options.dry_run,
          .warnings = options.warnings};
}

void keep_metadata(json::Value& next, const json::Value& live) {
  json::Object& metadata = json::make_object(next, {"metadata"});
  for (const std::string_view key : {"name",
                                     "namespace",
                                     "uid",
                                     "creationTimestamp",
                                     "deletionTimestamp",
                                     "deletionGracePeriodSeconds",
                                     "generateName",
                                     "generation",
                                     "resourceVersion"}) {
    const json::Value& value = json::at(live, "metadata", key);
    // Nobody sets these two by an update; what tries to is refused when the update is checked.
    const bool sets = !json::at(next, "metadata", key).is_null();
    if (sets &&
        ((key == "deletionTimestamp" && value.is_null()) || key == "deletionGracePeriodSeconds"))
      continue;
    if (value.is_null()) {
      if (const auto found = metadata.find(key); found != metadata.end())
        metadata.stable_erase(found);
    } else if (json::Value& kept = metadata[key]; !json::equal(kept, value)) {
      kept = value;
    }
  }
  if (const auto link = metadata.find("selfLink"); link != metadata.end())
    metadata.stable_erase(link);
}

Result<void> check_new_finalizers(const Resource& resource,
                                  const json::Value& next,
                                  const json::Value& live) {
  if (json::at(live, "metadata", "deletionTimestamp").is_null()) return {};
  std::vector<std::string> added;
  const json::Array& old = json::array_at(live, "metadata", "finalizers");
  for (const json::Value& finalizer : json::array_at(next, "metadata", "finalizers")) {
    if (std::none_of(old.begin(), old.end(), [&](const json::Value& each) {
          return json::equal(each, finalizer);
        })) {
      added.push_back(quoted(json::as_string(finalizer)));
    }
  }
  if (added.empty()) return {};
  Cause cause;
  cause.reason = "FieldValueForbidden";
  cause.field = "metadata.finalizers";
  cause.message = fmt::format(
      "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
      join(added, ", "));
  return fail(kube::invalid(resource.info.gvk(), kube::name_of(live), {std::move(cause)}));
}

/// `sent`: what the fields are taken from where the server has generated some of the object's; its
/// status is not.
void track_create(const Resource& resource,
                  const json::Value* sent,
                  json::Value& object,
                  const kube::ApplyRequest& request) {
  if (sent == nullptr) {
    kube::track_update(resource.shape(), nullptr, object, request);
    return;
  }
  json::Value tracked = *sent;
  json::remove(tracked, {"status"});
  kube::track_update(resource.shape(), nullptr, tracked, request);
  json::make(object, {"metadata", "managedFields"}) =
      json::at(tracked, "metadata", "managedFields");
}

}  // namespace

std::string generate_name(Env& env, std::string_view base) {
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string name(base.substr(0, 58));
  for (int i = 0; i < 5; ++i) name += kAlphabet[env.random() % kAlphabet.size()];
  return name;
}

bool may_go(const json::Value& object) {
  if (json::at(object, "metadata", "deletionTimestamp").is_null()) return false;
  if (!json::array_at(object, "metadata", "finalizers").empty()) return false;
  if (json::int_at(object, "metadata", "deletionGracePeriodSeconds") > 0) return false;
  if (json::string_at(object, "kind") == "Namespace" &&
      !json::array_at(object, "spec", "finalizers").empty())
    return false;
  return true;
}

Task<StoredPtr> Writer::unstored(const Resource& resource,
                                 std::string key,
                                 json::Value object,
                                 Revision revision,
                                 const WriteOptions& options) {
  StoredPtr stored;
  const auto write = [&] {
    json::Value whole = to_stored(resource, std::move(object));
    order_members(whole);
    stored = core_.image.make_stored(std::move(key), revision, whole);
  };
  if (options.beside)
    co_await core_.env.run_on_worker(write);
  else
    write();
  co_return stored;
}

/// One piece, because the order is the rule: what the server sets, what admission and webhooks make
/// of it, what is checked, and only then names, addresses and quota under the lock. Each step is a
/// call.
Task<Result<StoredPtr>> Writer::create(ResourcePtr resource,
                                       std::string ns,
                                       json::Value object,
                                       WriteOptions options,
                                       const User& user,
                                       std::vector<std::string>* warnings) {
  const Time now = core_.env.now();
  json::Object& metadata = json::make_object(object, {"metadata"});
  if (!json::string_at(object, "metadata", "resourceVersion").empty()) {
    co_return fail(bad_request("resourceVersion should not be set on objects to be created"));
  }
  const std::string base = json::text_at(object, "metadata", "generateName");
  const bool generated = json::string_at(object, "metadata", "name").empty() && !base.empty();
  if (generated) metadata["name"] = generate_name(core_.env, base);
  if (resource->info.namespaced) metadata["namespace"] = ns;
  if (!resource->info.namespaced && metadata.contains("namespace"))
    metadata.stable_erase(metadata.find("namespace"));
  for (const std::string_view key :
       {"selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion"}) {
    if (const auto found = metadata.find(key); found != metadata.end())
      metadata.stable_erase(found);
  }

  kube::pack_managers(object);
  const auto entered = core_.namespaces->enter(*resource, ns, json::text(metadata["name"]));
  if (!entered) co_return fail(entered.error());
  metadata["uid"] = net::random_uuid();
  metadata["creationTimestamp"] = format_time(now);
  // Fields belong to the writer as it sent them; what the server and admission add belongs to
  // nobody.
  const bool generates = resource->storage == "jobs.batch";
  const json::Value sent = generates ? object : json::Value();
  const auto prepare = [&] {
    prepare_create(*resource, object, now);
    if (!options.manager.empty() && !options.apply)
      track_create(
          *resource, generates ? &sent : nullptr, object, apply_request(*resource, options, now));
  };
  if (options.beside)
    co_await core_.env.run_on_worker(prepare);
  else
    prepare();
  if (core_.admission->awaits_account(*resource, ns, object))
    co_await core_.namespaces->ensure_contents(ns);
  const auto admitted = core_.admission->create(*resource, ns, object, user, warnings);
  if (!admitted) co_return fail(admitted.error());

  const Reviewed review{.resource = *resource,
                        .ns = ns,
                        .name = std::string(kube::name_of(object)),
                        .operation = "CREATE",
                        .subresource = options.subresource,
                        .user = user,
                        .dry_run = options.dry_run,
                        .warnings = warnings};
  if (core_.webhooks->mutating()) {
    const auto mutated = co_await core_.webhooks->mutate(review, object);
    if (!mutated) co_return fail(mutated.error());
  }

  const GuardedWrite guarded{.resource = *resource,
                             .ns = ns,
                             .next = object,
                             .user = user,
                             .subresource = options.subresource,
                             .warnings = warnings,
                             .violations = options.violations};
  // Rights that somebody gives away are looked at first, everything else once the object is valid.
  Result<void> permitted;
  if (grants_rights(*resource)) permitted = guard(core_, guarded);
  if (!permitted) co_return fail(permitted.error());

  std::vector<Cause> causes;
  if (options.beside)
    co_await core_.env.run_on_worker([&] { causes = check_create(*resource, object); });
  else
    causes = check_create(*resource, object);
  if (causes.empty() && core_.options.custom_rules)
    causes = core_.options.custom_rules(object, nullptr, warnings);
  if (!causes.empty()) {
    if (generated) json::make(object, {"metadata", "name"}) = "";
    co_return fail(kube::invalid(resource->info.gvk(), kube::name_of(object), std::move(causes)));
  }
  if (!grants_rights(*resource)) permitted = guard(core_, guarded);
  if (!permitted) co_return fail(permitted.error());
  if (core_.webhooks->validating()) {
    const auto validated = co_await core_.webhooks->validate(review, object);
    if (!validated) co_return fail(validated.error());
  }

  Collection& collection = core_.collection(*resource);
  for (int attempt = 0;; ++attempt) {
    const std::string key = resource->key(ns, kube::name_of(object));
    KeyLock lock = core_.image.try_lock(collection, key);
    if (!lock) lock = co_await core_.image.lock(collection, key);
    if (const Error* failure = core_.store.failure()) co_return fail(*failure);
    if (collection.find(key)) {
      if (!generated || attempt >= kNameAttempts)
        co_return fail(already_exists(*resource, kube::name_of(object)));
      json::make(object, {"metadata", "name"}) = generate_name(core_.env, base);
      continue;
    }
    const auto addressed = core_.services->allocate(*resource, object, json::null_value());
    if (!addressed) co_return fail(addressed.error());
    const auto charge = core_.quota->charge(*resource, ns, object, options.dry_run);
    if (!charge) co_return fail(charge.error());
    if (options.dry_run) {
      core_.services->release(*resource, object);
      auto shown = co_await unstored(*resource, key, std::move(object), 0, options);
      co_return shown;
    }
    auto stored =
        co_await core_.image.put(collection, key, to_stored(*resource, std::move(object)));
    core_.quota->settle(*charge);
    co_return stored;
  }
}

Result<void> Writer::begin_update(Draft& draft) {
  const auto& [resource, live, options, now, next_, status_alone, later_, changed_] = draft;
  json::Value& next = draft.next;
  if (status_alone) {
    // The rest was checked and completed when it came.
    kube::set_status_defaults(*resource.kind, next);
    return {};
  }
  const std::string name = json::text_at(live, "metadata", "name");
  const std::string_view wanted_version = kube::resource_version_of(next);
  if (!wanted_version.empty() && wanted_version != kube::resource_version_of(live)) {
    if (!parse_int(wanted_version))
      return fail(bad_request(fmt::format("invalid resource version: {}", quoted(wanted_version))));
    return fail(modified(resource, name));
  }
  const std::string_view wanted_uid = kube::uid_of(next);
  if (!wanted_uid.empty() && wanted_uid != kube::uid_of(live)) {
    return fail(conflict(
        resource,
        name,
        fmt::format(
            "StorageError: invalid object, Code: 4, Key: /registry/{}/{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in "
            "precondition: {}, UID in object meta: {}",
            resource.info.plural,
            resource.key(kube::namespace_of(live), name),
            wanted_uid,
            kube::uid_of(live))));
  }
  kube::pack_managers(next);
  next.get_object()["kind"] = resource.info.kind;
  next.get_object()["apiVersion"] = resource.api_version();
  const auto finalizers = check_new_finalizers(resource, next, live);
  if (!finalizers) return finalizers;
  const json::Value generation = json::at(next, "metadata", "generation");
  keep_metadata(next, live);
  if (!unchecked(options.subresource))
    apply_defaults(resource, next);
  else if (generation.is_number())
    json::make(next, {"metadata", "generation"}) = generation;
  return {};
}

void Writer::prepare(Draft& draft) {
  if (draft.status_alone) return;
  if (draft.options.subresource == "status") {
    prepare_status_update(draft.resource, draft.next, draft.live);
  } else {
    prepare_update(draft.resource, draft.next, draft.live);
  }
}

Result<void> Writer::finish_update(Draft& draft) {
  const auto& [resource, live, options, now, next_, status_alone, later_, changed_] = draft;
  json::Value& next = draft.next;
  draft.changed = status_alone ? !json::equal(json::at(next, "status"), json::at(live, "status"))
                               : !same_content(next, live);
  if (draft.changed && !unchecked(options.subresource)) {
    auto causes = check_update(resource, next, live);
    if (!causes.empty())
      return fail(kube::invalid(resource.info.gvk(), kube::name_of(live), std::move(causes)));
  }
  // A body without managedFields says nothing about them; an empty list resets them.
  const json::Value& managers = json::at(live, "metadata", "managedFields");
  if (!options.apply && !managers.is_null() &&
      json::at(next, "metadata", "managedFields").is_null())
    json::make(next, {"metadata", "managedFields"}) = managers;
  if (tracks(draft) && !draft.track_later)
    kube::track_update(resource.shape(), &live, next, apply_request(resource, options, now));
  return {};
}

bool Writer::tracks(const Draft& draft) {
  return !draft.options.manager.empty() && !draft.options.apply && draft.changed;
}

Image::Finish Writer::tracking(ResourcePtr resource, kube::ObjectPtr live, const Draft& draft) {
  if (!draft.track_later || !tracks(draft)) return nullptr;
  return [resource = std::move(resource),
          live = std::move(live),
          request = apply_request(draft.resource, draft.options, draft.now)](json::Value& object) {
    kube::track_update(resource->shape(), live.get(), object, request);
  };
}

Result<void> Writer::apply_rules(const Draft& draft) const {
  const WriteOptions& options = draft.options;
  const bool whole = options.subresource.empty() || options.subresource == "scale";
  if (!draft.changed || !whole || !core_.options.custom_rules) return {};
  auto causes = core_.options.custom_rules(draft.next, &draft.live, nullptr);
  if (causes.empty()) return {};
  return fail(
      kube::invalid(draft.resource.info.gvk(), kube::name_of(draft.live), std::move(causes)));
}

void Writer::admit(Draft& draft) const {
  // Before the update is compared with what is stored: what admission puts back is no change.
  if (draft.resource.storage == "pods" && draft.options.subresource.empty())
    core_.admission->update_pod(draft.next);
}

Result<void> Writer::make_update(Draft& draft) const {
  auto good = begin_update(draft);
  if (!good) return good;
  if (!unchecked(draft.options.subresource)) {
    admit(draft);
    prepare(draft);
    good = core_.services->allocate(draft.resource, draft.next, draft.live);
    if (!good) return good;
  }
  good = finish_update(draft);
  return good ? apply_rules(draft) : good;
}

Task<Result<void>> Writer::make_update_beside(Draft& draft) const {
  Result<void> good;
  co_await core_.env.run_on_worker([&] { good = begin_update(draft); });
  if (!good) co_return good;
  if (!unchecked(draft.options.subresource)) {
    admit(draft);
    co_await core_.env.run_on_worker([&] { prepare(draft); });
    good = core_.services->allocate(draft.resource, draft.next, draft.live);
    if (!good) co_return good;
  }
  co_await core_.env.run_on_worker([&] { good = finish_update(draft); });
  co_return good ? apply_rules(draft) : good;
}

/// One piece, because the order is the rule, as for create(); each step is a call.
Task<Result<StoredPtr>> Writer::update(
    ResourcePtr resource, std::string ns, std::string name, Compute compute, WriteOptions options) {
  Collection& collection = core_.collection(*resource);
  const std::string key = resource->key(ns, name);
  KeyLock lock = core_.image.try_lock(collection, key);
  if (!lock) lock = co_await core_.image.lock(collection, key);
  if (const Error* failure = core_.store.failure()) co_return fail(*failure);
  const StoredPtr current = collection.find(key);
  if (!current) co_return fail(not_found(*resource, name));
  if (!options.uid.empty() && options.uid != kube::uid_of(current->object)) {
    co_return fail(
        conflict(*resource,
                 name,
                 fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: {}",
                             options.uid,
                             kube::uid_of(current->object))));
  }
  // The image's own tree; only a kind that is served otherwise than stored needs one of its own.
  const kube::ObjectPtr served = served_object(*resource, current);
  const json::Value& live = *served;
  // Made in place: an assignment would copy it out of the request's memory.
  Result<json::Value> computed = options.beside ? Result<json::Value>() : compute(live);
  if (options.beside) co_await core_.env.run_on_worker([&] { computed = compute(live); });
  if (!computed) co_return fail(computed.error());
  const bool reviewed = options.user != nullptr && !internal(options.subresource);
  const bool mutating = reviewed && core_.webhooks->mutating();
  if (mutating) {
    const auto mutated =
        co_await core_.webhooks->mutate(review_of(*resource, ns, name, live, options), *computed);
    if (!mutated) co_return fail(mutated.error());
  }
  Draft draft{*resource,
              live,
              options,
              core_.env.now(),
              std::move(*computed),
              options.status_alone && !mutating};
  // Not where somebody looks at the object before it is stored.
  draft.track_later = resource->same_as_storage() && !options.dry_run && !options.beside &&
                      !(reviewed && core_.webhooks->validating());
  Result<void> made;
  if (options.beside)
    made = co_await make_update_beside(draft);
  else
    made = make_update(draft);
  if (!made) co_return fail(made.error());
  json::Value* next = &draft.next;
  if (draft.changed && options.user != nullptr) {
    const GuardedWrite guarded{.resource = *resource,
                               .ns = ns,
                               .next = *next,
                               .live = &live,
                               .user = *options.user,
                               .subresource = options.subresource,
                               .warnings = options.warnings,
                               .violations = options.violations};
    const auto permitted = guard(core_, guarded);
    if (!permitted) co_return fail(permitted.error());
  }
  if (reviewed && draft.changed && core_.webhooks->validating()) {
    const auto validated =
        co_await core_.webhooks->validate(review_of(*resource, ns, name, live, options), *next);
    if (!validated) co_return fail(validated.error());
  }

  const Image::Finish track = tracking(resource, served, draft);
  if (may_go(*next)) {
    if (track) track(*next);
    if (options.dry_run) {
      auto shown = co_await unstored(*resource, key, std::move(*next), current->revision, options);
      co_return shown;
    }
    auto gone = co_await core_.image.erase(collection, key, to_stored(*resource, std::move(*next)));
    co_return gone;
  }
  const bool unchanged = !draft.changed && same_managers(*next, live);
  if (unchanged) co_return current;
  if (options.dry_run) {
    auto shown = co_await unstored(*resource, key, std::move(*next), current->revision, options);
    co_return shown;
  }
  auto stored =
      co_await core_.image.put(collection, key, to_stored(*resource, std::move(*next)), track);
  co_return stored;
}

}  // namespace muster::apiserver
