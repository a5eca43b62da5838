#include "portal/session/rights.h"

#include "base/strings.h"

namespace muster::portal {

/// Without a namespace: in all of them.
Task<bool> Rights::lists_pods(User user, std::string ns) {
  const bool whole = co_await reads_environments(user, ns);
  if (whole) co_return true;
  const bool summary = co_await kube_.may(
      user, {.verb = "list", .resource = "pods", .subresource = "summary", .ns = ns});
  co_return summary;
}

Task<bool> Rights::reads_environments(User user, std::string ns) {
  if (user.admin) co_return true;
  const bool may = co_await kube_.may(user, {.verb = "list", .resource = "pods", .ns = ns});
  co_return may;
}

Task<VisiblePtr> Rights::visible(User user) {
  const std::string key = user.name + "\x1f" + join(user.groups, "\x1f");
  if (const auto found = known_.find(key);
      found != known_.end() && env_.monotonic() - found->second.at < kFor)
    co_return found->second.visible;
  auto visible = std::make_shared<Visible>();
  visible->openpai = user.openpai;
  const Kube::Act stop{.verb = "delete", .resource = "pods"};
  visible->all = visible->changes_all = user.admin;
  if (!user.admin) {
    visible->all = co_await lists_pods(user, "");
    visible->changes_all = co_await kube_.may(user, stop);
  }
  if (!visible->changes_all) {
    std::vector<std::string> names;
    for (const auto& [name, object] : namespaces_.objects()) names.push_back(name);
    for (const std::string& name : names) {
      bool may_look = visible->all;
      if (!may_look) may_look = co_await lists_pods(user, name);
      if (!may_look) continue;
      if (!visible->all) visible->namespaces.insert(name);
      Kube::Act here = stop;
      here.ns = name;
      const bool may_stop = co_await kube_.may(user, here);
      if (may_stop) visible->changes.insert(name);
    }
  }
  if (known_.size() >= kMax) known_.clear();
  VisiblePtr result = std::move(visible);
  known_[key] = {result, env_.monotonic()};
  co_return result;
}

void Rights::forget(const std::string& user) {
  std::erase_if(known_, [&](const auto& one) { return one.first.starts_with(user + "\x1f"); });
}

}  // namespace muster::portal
