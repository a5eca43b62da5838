#include "portal/session/rights.h"

#include "base/strings.h"

namespace muster::portal {

Task<VisiblePtr> Rights::visible(User user) {
  const std::string key = user.name + "\x1f" + join(user.groups, "\x1f");
  if (const auto found = known_.find(key);
      found != known_.end() && env_.monotonic() - found->second.at < kFor)
    co_return found->second.visible;
  auto visible = std::make_shared<Visible>();
  visible->openpai = user.openpai;
  const Kube::Act look{.verb = "list", .resource = "pods"};
  visible->all = user.admin;
  if (!visible->all) visible->all = co_await kube_.may(user, look);
  if (!visible->all) {
    std::vector<std::string> names;
    for (const auto& [name, object] : namespaces_.objects()) names.push_back(name);
    for (const std::string& name : names) {
      Kube::Act here = look;
      here.ns = name;
      const bool may = co_await kube_.may(user, here);
      if (may) visible->namespaces.insert(name);
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
