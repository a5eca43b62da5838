#include "controllers/endpoints/controller.h"

#include <algorithm>

#include "controllers/common/native_kinds.h"
#include "controllers/common/objects.h"
#include "controllers/endpoints/plan.h"
#include "controllers/endpoints/slices.h"

namespace muster::controllers::endpoints {
namespace {

std::vector<std::string> selector_keys(const json::Value& service) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json::object_at(service, "spec", "selector"))
    keys.emplace_back(std::string_view(key));
  std::sort(keys.begin(), keys.end());
  return keys;
}

/// The values of these keys, or empty when one is missing.
std::string place(const std::string& ns,
                  const std::vector<std::string>& keys,
                  const json::Value& labels) {
  std::string result = ns;
  for (const auto& key : keys) {
    const auto& value = json::at(labels, std::string_view(key));
    if (!value.is_string()) return {};
    result += '\n';
    result += json::as_string(value);
  }
  return result;
}

bool same_for_endpoints(const json::Value& a, const json::Value& b) {
  return json::equal(json::at(a, "metadata", "labels"), json::at(b, "metadata", "labels")) &&
         json::at(a, "status", "podIP") == json::at(b, "status", "podIP") &&
         json::at(a, "status", "phase") == json::at(b, "status", "phase") &&
         is_ready(a) == is_ready(b) && is_deleting(a) == is_deleting(b);
}

}  // namespace

Controller::Controller(Env& env, client::Client& client, Caches& caches, int workers)
    : client_(client), caches_(caches) {
  client::WorkQueueOptions options;
  options.workers = workers;
  queue_ = client::make_work_queue(
      env, [this](std::string key) { return work(std::move(key)); }, options);
  caches_.follow(kinds::kEndpoints);
  caches_.follow(kinds::kEndpointSlice);
  caches_.on_change(kinds::kService, [this](const auto& old_object, const auto& new_object) {
    service_changed(old_object, new_object);
  });
  caches_.on_change(kinds::kPod, [this](const auto& old_object, const auto& new_object) {
    pod_changed(old_object, new_object);
  });
}

Task<void> Controller::stop() { co_await queue_->stop(); }

void Controller::service_changed(const client::ObjectPtr& old_object,
                                 const client::ObjectPtr& new_object) {
  for (const auto& object : {old_object, new_object}) {
    if (!object) continue;
    const auto keys = selector_keys(*object);
    if (keys.empty()) continue;
    const auto [found, added] = indexes_.try_emplace(keys);
    auto& index = found->second;
    if (added) {
      for (const auto& key : all_pods_) {
        if (const auto pod = caches_.find(kinds::kPod, key)) file_pod(keys, index, *pod, true);
      }
    }
    const auto where = place(namespace_of(*object), keys, json::at(*object, "spec", "selector"));
    auto& services = index.services[where];
    object == new_object ? void(services.insert(client::key_of(*object)))
                         : void(services.erase(client::key_of(*object)));
    if (services.empty()) index.services.erase(where);
  }
  queue_->add(client::key_of(new_object ? *new_object : *old_object));
}

void Controller::file_pod(const Keys& keys, Index& index, const json::Value& pod, bool add) {
  const auto where = place(namespace_of(pod), keys, json::at(pod, "metadata", "labels"));
  if (where.empty()) return;
  if (add) {
    index.pods[where].insert(client::key_of(pod));
  } else if (const auto found = index.pods.find(where); found != index.pods.end()) {
    found->second.erase(client::key_of(pod));
    if (found->second.empty()) index.pods.erase(found);
  }
  if (const auto services = index.services.find(where); services != index.services.end()) {
    for (const auto& service : services->second) queue_->add(service);
  }
}

void Controller::pod_changed(const client::ObjectPtr& old_object,
                             const client::ObjectPtr& new_object) {
  if (old_object && new_object && same_for_endpoints(*old_object, *new_object)) return;
  if (new_object) {
    all_pods_.insert(client::key_of(*new_object));
  } else {
    all_pods_.erase(client::key_of(*old_object));
  }
  for (auto& [keys, index] : indexes_) {
    if (old_object) file_pod(keys, index, *old_object, false);
    if (new_object) file_pod(keys, index, *new_object, true);
  }
}

Task<Result<void>> Controller::work(std::string key) {
  const auto service = caches_.find(kinds::kService, key);
  const auto found = caches_.find(kinds::kEndpoints, key);
  const auto slash = key.find('/');
  const auto ns = key.substr(0, slash), name = key.substr(slash + 1);
  if (!service) {
    if (!found) co_return Result<void>{};
    const auto removed =
        co_await client_.remove(client::resources::kEndpoints, ns, name, client::DeleteOptions{});
    if (!removed && removed.error().code != Code::kNotFound) co_return removed;
    co_return Result<void>{};
  }
  const auto keys = selector_keys(*service);
  if (keys.empty()) co_return Result<void>{};  // somebody else's to keep
  Objects pods;
  std::vector<client::ObjectPtr> held;
  if (const auto index = indexes_.find(keys); index != indexes_.end()) {
    if (const auto filed =
            index->second.pods.find(place(ns, keys, json::at(*service, "spec", "selector")));
        filed != index->second.pods.end()) {
      for (const auto& pod_key : filed->second) {
        if (auto pod = caches_.find(kinds::kPod, pod_key)) {
          pods.push_back(pod.get());
          held.push_back(std::move(pod));
        }
      }
    }
  }
  const auto plan = endpoints::plan(*service, pods, found.get());
  const auto written = co_await apply(ns, plan);
  if (!written) co_return written;
  const auto slices =
      plan_slices(*service, pods, caches_.controlled_by(kinds::kEndpointSlice, uid_of(*service)));
  const auto sliced = co_await apply(ns, slices);
  co_return sliced;
}

Task<Result<void>> Controller::apply(std::string ns, const Plan& plan) {
  for (const auto& action : plan.actions) {
    const auto& resource = resource_of(action.kind);
    if (action.verb == Action::Verb::kCreate) {
      // There already: the cache will show it, and what it lacks comes with its next look.
      const auto created = co_await client_.create(resource, ns, action.body);
      if (!created && created.error().code != Code::kAlreadyExists &&
          created.error().code != Code::kNotFound)
        co_return fail(created.error());
    } else if (action.verb == Action::Verb::kDelete) {
      const auto removed =
          co_await client_.remove(resource, ns, action.name, client::DeleteOptions{});
      if (!removed && removed.error().code != Code::kNotFound) co_return removed;
    } else {
      const auto patched = co_await client_.patch(
          resource, ns, action.name, "", client::PatchType::kMerge, action.body);
      if (!patched) co_return fail(patched.error());
    }
  }
  co_return Result<void>{};
}

}  // namespace muster::controllers::endpoints
