#include "controllers/queue_access.h"

#include <fmt/core.h>

#include <algorithm>

#include "client/access_review.h"
#include "kube/resources.h"
#include "kube/security/names.h"

namespace muster::controllers {
namespace {

bool is_trusted(const json::Value& user) {
  const json::Array& groups = json::array_at(user, "groups");
  return std::any_of(groups.begin(), groups.end(), [](const json::Value& each) {
    return json::as_string(each) == "system:masters" ||
           json::as_string(each) == "system:serviceaccounts:kube-system";
  });
}

bool is_pod(const json::Value& object) {
  return json::string_at(object, "kind") == "Pod" && json::string_at(object, "apiVersion") == "v1";
}

}  // namespace

Task<Result<std::vector<kube::TenantName>>> QueueAccess::wanted_by(json::Value object) {
  bool t9k = false;
  const std::string key = is_pod(object) ? kube::group_of_pod(object, &t9k) : "";
  if (key.empty()) co_return kube::tenants_of(object);
  const auto slash = key.find('/');
  const auto group =
      co_await client_.get(t9k ? kube::resources::kT9kPodGroups : kube::resources::kPodGroups,
                           key.substr(0, slash),
                           key.substr(slash + 1));
  if (group) co_return kube::tenants_of_member(object, *group);
  if (group.error().code != Code::kNotFound) co_return fail(group.error());
  // Whoever makes the group later is asked then.
  co_return kube::tenants_of(object);
}

Task<Result<bool>> QueueAccess::holds_use(const json::Value& request,
                                          const kube::TenantName& tenant) {
  const json::Value& user = json::at(request, "userInfo");
  json::Object spec{{"user", json::at(user, "username")},
                    {"groups", json::as_array(json::at(user, "groups"))},
                    {"resourceAttributes",
                     {{"verb", kube::names::access::kUse},
                      {"group", tenant.group()},
                      {"resource", tenant.resource()},
                      {"name", tenant.name},
                      {"namespace", json::text_at(request, "namespace")}}}};
  for (const std::string_view key : {"uid", "extra"}) {
    if (!json::is_empty(json::at(user, key))) spec[key] = json::at(user, key);
  }
  auto allowed = co_await client::review_access(client_, std::move(spec));
  co_return allowed;
}

Task<Result<void>> QueueAccess::may_use(const json::Value& request, kube::TenantName tenant) {
  const std::string ns = json::text_at(request, "namespace");
  kube::Admits said = kube::Admits::kUnsaid;
  const bool cells = tenant.kind == kube::TenantKind::kVirtualCluster;
  if (!cells) {
    const bool t9k = tenant.kind == kube::TenantKind::kT9kQueue;
    const auto queue = co_await client_.get(
        t9k ? kube::resources::kT9kQueues : kube::resources::kQueues, t9k ? ns : "", tenant.name);
    if (!queue && queue.error().code != Code::kNotFound) co_return fail(queue.error());
    if (queue) said = kube::queue_admits(*queue, ns);
  }
  if (said == kube::Admits::kYes) co_return Result<void>();
  const bool open = !closed_ || (!cells && tenant.name == "default");
  if (said == kube::Admits::kUnsaid && open) co_return Result<void>();
  const auto holds = co_await holds_use(request, tenant);
  if (!holds) co_return fail(holds.error());
  if (*holds) co_return Result<void>();
  co_return fail(Code::kForbidden,
                 kube::refusal(tenant, json::string_at(request, "userInfo", "username"), ns));
}

Task<Result<void>> QueueAccess::check(json::Value request) {
  if (is_trusted(json::at(request, "userInfo"))) co_return Result<void>();
  json::Value object = json::at(request, "object");
  // A pod that is being made does not say its namespace itself.
  json::make(object, {"metadata", "namespace"}) = json::at(request, "namespace");
  const auto wanted = co_await wanted_by(object);
  if (!wanted) co_return fail(wanted.error());
  std::vector<kube::TenantName> before;
  if (const json::Value& old = json::at(request, "oldObject"); old.is_object()) {
    const auto found = co_await wanted_by(old);
    if (!found) co_return fail(found.error());
    before = *found;
  }
  for (const kube::TenantName& tenant : *wanted) {
    if (std::binary_search(before.begin(), before.end(), tenant)) continue;
    const auto allowed = co_await may_use(request, tenant);
    if (!allowed) co_return allowed;
  }
  co_return Result<void>();
}

}  // namespace muster::controllers
