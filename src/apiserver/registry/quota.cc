#include "apiserver/registry/quota.h"

#include <fmt/core.h>

#include <algorithm>

#include "apiserver/registry/writer.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"

namespace muster::apiserver {
namespace {

/// What one object counts for, under every name a quota may use.
Quota::Amounts usage_of(const Resource& resource, const json::Value& object) {
  Quota::Amounts used;
  used["count/" + resource.storage] = Quantity::from_units(1);
  if (resource.kind->rules->usage != nullptr) resource.kind->rules->usage(object, used);
  return used;
}

bool in_scope(const json::Value& quota, const std::string& storage, const json::Value& object) {
  const auto matches = [&](std::string_view scope, std::string_view op, const json::Array& values) {
    const bool deadline = !json::at(object, "spec", "activeDeadlineSeconds").is_null();
    const bool best_effort = kube::qos_class(object) == "BestEffort";
    if (scope == "Terminating") return deadline;
    if (scope == "NotTerminating") return !deadline;
    if (scope == "BestEffort") return best_effort;
    if (scope == "NotBestEffort") return !best_effort;
    if (scope == "PriorityClass") {
      const json::Value& name = json::at(object, "spec", "priorityClassName");
      const bool listed = std::any_of(values.begin(), values.end(), [&](const json::Value& each) {
        return json::equal(each, name);
      });
      if (op == "In") return listed;
      if (op == "NotIn") return !listed;
      return op == "Exists" ? !json::as_string(name).empty() : json::as_string(name).empty();
    }
    return false;
  };
  const json::Array& scopes = json::array_at(quota, "spec", "scopes");
  const json::Array& expressions =
      json::array_at(quota, "spec", "scopeSelector", "matchExpressions");
  if (scopes.empty() && expressions.empty()) return true;
  if (storage != "pods") return false;
  for (const json::Value& scope : scopes) {
    if (!matches(json::as_string(scope), "Exists", {})) return false;
  }
  for (const json::Value& expression : expressions) {
    if (!matches(json::string_at(expression, "scopeName"),
                 json::string_at(expression, "operator"),
                 json::array_at(expression, "values"))) {
      return false;
    }
  }
  return true;
}

std::string show(const Quota::Amounts& amounts) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : amounts) parts.push_back(name + "=" + value.text());
  return join(parts, ",");
}

/// "limits.cpu for: main": containers must name what the quota limits.
std::string unspecified(const json::Value& pod, const json::Object& hard) {
  std::vector<std::string> missing;
  for (const auto& member : hard) {
    const std::string name = std::string(member.key());
    const bool limits = name.starts_with("limits.");
    std::string resource = limits                          ? name.substr(7)
                           : name.starts_with("requests.") ? name.substr(9)
                                                           : name;
    if (resource != "cpu" && resource != "memory") continue;
    std::vector<std::string> containers;
    for (const json::Value& container : json::array_at(pod, "spec", "containers")) {
      if (json::at(container, "resources", limits ? "limits" : "requests", resource).is_null())
        containers.push_back(json::text_at(container, "name"));
    }
    if (!containers.empty()) missing.push_back(name + " for: " + join(containers, ","));
  }
  std::sort(missing.begin(), missing.end());
  return join(missing, "; ");
}

}  // namespace

void Quota::start() {
  for (const auto& [key, stored] : core_.image.collection("resourcequotas").objects())
    rebuild(stored);
  wake_ = core_.env.make_signal();
  core_.env.spawn(write_status());
}

void Quota::rebuild(const StoredPtr& quota) {
  Usage& usage = usage_[quota->key];
  usage.quota = quota;
  usage.used.clear();
  const json::Object& hard = json::object_at(quota->object, "spec", "hard");
  for (const auto& member : hard) usage.used[std::string(member.key())] = Quantity();
  for (const ResourcePtr& resource : core_.resources.stored()) {
    if (!resource->info.namespaced) continue;
    core_.collection(*resource).each_in(quota->ns(), [&](const StoredPtr& stored) {
      if (!in_scope(quota->object, resource->storage, stored->object)) return;
      for (const auto& [name, value] : usage_of(*resource, stored->object)) {
        if (const auto found = usage.used.find(name); found != usage.used.end())
          found->second = value + found->second;
      }
    });
  }
  mark_dirty(quota->key);
}

void Quota::account(Collection& collection,
                    const json::Value& object,
                    std::string_view ns,
                    bool add) {
  const std::string prefix = std::string(ns) + "/";
  ResourcePtr resource;
  for (auto it = usage_.lower_bound(prefix); it != usage_.end() && it->first.starts_with(prefix);
       ++it) {
    if (!in_scope(it->second.quota->object, collection.storage(), object)) continue;
    if (!resource) resource = core_.resources.by_storage(collection.storage());
    if (!resource) return;
    for (const auto& [name, value] : usage_of(*resource, object)) {
      const auto found = it->second.used.find(name);
      if (found == it->second.used.end()) continue;
      found->second = add ? value + found->second : found->second - value;
      mark_dirty(it->first);
    }
  }
}

void Quota::observe(Collection& collection, const Change& change) {
  const std::string_view ns = change.after->ns();
  if (ns.empty()) return;
  if (collection.storage() == "resourcequotas") {
    if (change.deleted) {
      usage_.erase(change.after->key);
      return;
    }
    if (!change.before || !json::equal(json::at(change.before->object, "spec"),
                                       json::at(change.after->object, "spec"))) {
      rebuild(change.after);
    } else {
      usage_[change.after->key].quota = change.after;
    }
  }
  if (usage_.empty() || collection.storage() == "events") return;
  if (change.before) account(collection, change.before->object, ns, false);
  if (!change.deleted) account(collection, change.after->object, ns, true);
}

Result<Quota::Charge> Quota::charge(const Resource& resource,
                                    const std::string& ns,
                                    const json::Value& object,
                                    bool dry_run) {
  Charge charge;
  if (usage_.empty() || !resource.info.namespaced || resource.storage == "events") return charge;
  const std::string prefix = ns + "/";
  const Amounts wanted = usage_of(resource, object);
  const std::string_view name = kube::name_of(object);
  for (auto it = usage_.lower_bound(prefix); it != usage_.end() && it->first.starts_with(prefix);
       ++it) {
    Usage& usage = it->second;
    if (!in_scope(usage.quota->object, resource.storage, object)) continue;
    const json::Object& hard = json::object_at(usage.quota->object, "spec", "hard");
    if (resource.storage == "pods") {
      const std::string missing = unspecified(object, hard);
      if (!missing.empty())
        return fail(forbidden(
            resource,
            name,
            fmt::format("failed quota: {}: must specify {}", usage.quota->name(), missing)));
    }
    Amounts asked, used, limited, taken;
    for (const auto& member : hard) {
      const std::string key(member.key());
      const auto want = wanted.find(key);
      if (want == wanted.end() || want->second.is_zero()) continue;
      const auto limit = parse_quantity(json::as_string(member.value()));
      if (!limit) continue;
      const Quantity now = usage.used[key] + usage.pending[key];
      taken[key] = want->second;
      if (now + want->second > *limit) {
        asked[key] = want->second;
        used[key] = now;
        limited[key] = *limit;
      }
    }
    if (!asked.empty()) {
      return fail(forbidden(resource,
                            name,
                            fmt::format("exceeded quota: {}, requested: {}, used: {}, limited: {}",
                                        usage.quota->name(),
                                        show(asked),
                                        show(used),
                                        show(limited))));
    }
    if (!taken.empty()) charge.pending.emplace_back(it->first, std::move(taken));
  }
  if (dry_run) charge.pending.clear();
  for (const auto& [key, taken] : charge.pending) {
    for (const auto& [what, value] : taken)
      usage_[key].pending[what] = usage_[key].pending[what] + value;
  }
  return charge;
}

void Quota::settle(const Charge& charge) {
  for (const auto& [key, taken] : charge.pending) {
    const auto found = usage_.find(key);
    if (found == usage_.end()) continue;
    for (const auto& [what, value] : taken)
      found->second.pending[what] = found->second.pending[what] - value;
  }
}

void Quota::mark_dirty(const std::string& key) {
  dirty_.insert(key);
  if (wake_) wake_->notify();
}

Task<void> Quota::write_status() {
  const Gate::Pass pass(core_.gate);
  const Gate::Sleeper sleeper(core_.gate, *wake_);
  const ResourcePtr resource = core_.resources.get("", "v1", "resourcequotas");
  while (!core_.gate.closed()) {
    if (dirty_.empty()) {
      co_await wake_->wait(Duration::zero());
      continue;
    }
    const std::set<std::string> dirty = std::exchange(dirty_, {});
    for (const std::string& key : dirty) {
      const auto found = usage_.find(key);
      if (found == usage_.end()) continue;
      const StoredPtr quota = found->second.quota;
      const auto used = found->second.used;
      WriteOptions options;
      options.subresource = "internal";
      options.uid = std::string(kube::uid_of(quota->object));
      const auto written = co_await core_.writer->update(
          resource,
          std::string(quota->ns()),
          std::string(quota->name()),
          [&used](const json::Value& live) -> Result<json::Value> {
            json::Value next = live;
            json::make(next, {"status", "hard"}) = json::at(live, "spec", "hard");
            json::Object now;
            for (const auto& member : json::object_at(live, "spec", "hard")) {
              const auto value = used.find(std::string(member.key()));
              now[member.key()] = value == used.end() ? "0" : value->second.text();
            }
            json::make(next, {"status", "used"}) = std::move(now);
            return next;
          },
          options);
      if (!written && written.error().code != Code::kNotFound &&
          written.error().code != Code::kConflict) {
        log::warn("apiserver", "quota {}: {}", key, written.error().message);
      }
    }
    // Many pods of a job change the same quota: one write tells about all of them.
    co_await core_.env.sleep(std::chrono::milliseconds(50));
  }
}

}  // namespace muster::apiserver
