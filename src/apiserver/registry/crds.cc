#include "apiserver/registry/crds.h"

#include <fmt/core.h>

#include "apiserver/registry/writer.h"
#include "apiserver/rest/batch.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "kube/resources.h"

namespace muster::apiserver {
namespace {

json::Value accepted_names(const json::Value& crd) {
  json::Value names = json::at(crd, "spec", "names");
  return names;
}

}  // namespace

Result<void> Crds::admit(json::Value& crd) {
  const std::string kind = json::text_at(crd, "spec", "names", "kind");
  if (json::at(crd, "spec", "names").is_object()) {
    json::Object& names = json::make_object(crd, {"spec", "names"});
    if (!names.contains("listKind")) names["listKind"] = kind + "List";
    if (!names.contains("singular")) names["singular"] = to_lower(kind);
  }
  if (!json::at(crd, "spec", "conversion").is_object())
    json::make(crd, {"spec", "conversion"}) = json::Value{{"strategy", "None"}};
  const auto parsed = kube::parse_crd(crd);
  if (!parsed) return fail(parsed.error());
  return {};
}

void Crds::start() {
  for (const auto& [name, stored] :
       core_.image.collection(kube::collections::kCustomResourceDefinitions).objects()) {
    serve(stored);
    if (kube::is_deleting(stored->object) && cleaning_.insert(name).second)
      core_.env.spawn(clean_up(name));
  }
}

void Crds::serve(const StoredPtr& crd) {
  const auto generation =
      static_cast<Revision>(json::as_int(json::at(crd->object, "metadata", "generation"), 1));
  if (const auto found = served_.find(crd->key);
      found != served_.end() && found->second == generation)
    return;
  auto parsed = kube::parse_crd(crd->object);
  if (!parsed) {
    log::warn("apiserver",
              "CustomResourceDefinition {} is not served: {}",
              crd->key,
              parsed.error().message);
    return;
  }
  served_[crd->key] = generation;
  core_.image.collection(parsed->plural + "." + parsed->group).retired = false;
  core_.resources.set_crd(crd->key, std::make_shared<const kube::Crd>(std::move(*parsed)));
}

void Crds::observe(Collection& collection, const Change& change) {
  if (collection.storage() != kube::collections::kCustomResourceDefinitions) return;
  const std::string name = change.after->key;
  if (change.deleted) {
    served_.erase(name);
    core_.resources.remove_crd(name);
    Collection& objects = core_.image.collection(name);
    objects.retired = true;
    objects.wake_all();
    return;
  }
  if (kube::is_deleting(change.after->object)) {
    if (cleaning_.insert(name).second) core_.env.spawn(clean_up(name));
    return;
  }
  serve(change.after);
  if (!kube::condition_true(change.after->object, "Established")) core_.env.spawn(establish(name));
}

Task<void> Crds::establish(std::string name) {
  const Gate::Pass pass(core_.gate);
  const ResourcePtr resource =
      core_.resources.by_storage(kube::collections::kCustomResourceDefinitions);
  const Time now = core_.env.now();
  WriteOptions options;
  options.subresource = "internal";
  const auto written = co_await core_.writer->update(
      resource,
      "",
      name,
      [&](const json::Value& live) -> Result<json::Value> {
        json::Value next = live;
        json::make(next, {"status", "acceptedNames"}) = accepted_names(live);
        json::Array stored_versions;
        for (const json::Value& version : json::array_at(live, "spec", "versions")) {
          if (json::bool_at(version, "storage"))
            stored_versions.push_back(json::at(version, "name"));
        }
        json::make(next, {"status", "storedVersions"}) = std::move(stored_versions);
        kube::set_condition(
            next, {"NamesAccepted", "True", "NoConflicts", "no conflicts found"}, now);
        kube::set_condition(
            next,
            {"Established", "True", "InitialNamesAccepted", "the initial names have been accepted"},
            now);
        // Deleting the definition deletes its objects first.
        json::Value& finalizers = json::make(next, {"metadata", "finalizers"});
        if (!finalizers.is_array()) finalizers = json::Array();
        bool held = false;
        for (const json::Value& each : finalizers.get_array())
          held = held || json::as_string(each) == kube::names::kubernetes::kCrdCleanup;
        if (!held)
          finalizers.get_array().push_back(json::Value(kube::names::kubernetes::kCrdCleanup));
        return next;
      },
      options);
  if (!written && written.error().code != Code::kNotFound)
    log::warn("apiserver", "CustomResourceDefinition {}: {}", name, written.error().message);
}

Task<void> Crds::clean_up(std::string name) {
  const Gate::Pass pass(core_.gate);
  const auto signal = core_.env.make_signal();
  const Gate::Sleeper sleeper(core_.gate, *signal);
  while (!core_.gate.closed()) {
    const ResourcePtr kind = core_.resources.by_storage(name);
    Collection& objects = core_.image.collection(name);
    if (!kind || objects.objects().empty()) break;
    std::vector<StoredPtr> all;
    for (const auto& [key, stored] : objects.objects()) {
      if (!kube::is_deleting(stored->object)) all.push_back(stored);
    }
    const BatchResult removed = co_await remove_all(core_, kind, std::move(all), DeleteRequest());
    if (removed.failure)
      log::debug("apiserver", "CustomResourceDefinition {}: {}", name, removed.failure->message);
    if (!objects.objects().empty()) co_await signal->wait(std::chrono::milliseconds(500));
  }
  cleaning_.erase(name);
  if (core_.gate.closed()) co_return;
  const ResourcePtr resource =
      core_.resources.by_storage(kube::collections::kCustomResourceDefinitions);
  WriteOptions options;
  options.subresource = "internal";
  const auto done = co_await core_.writer->update(
      resource,
      "",
      name,
      [](const json::Value& live) -> Result<json::Value> {
        json::Value next = live;
        json::Array left;
        for (const json::Value& each : json::array_at(live, "metadata", "finalizers")) {
          if (json::as_string(each) != kube::names::kubernetes::kCrdCleanup) left.push_back(each);
        }
        if (left.empty()) {
          json::remove(next, {"metadata", "finalizers"});
        } else {
          json::make(next, {"metadata", "finalizers"}) = std::move(left);
        }
        return next;
      },
      options);
  if (!done && done.error().code != Code::kNotFound)
    log::warn("apiserver", "CustomResourceDefinition {}: {}", name, done.error().message);
}

}  // namespace muster::apiserver
