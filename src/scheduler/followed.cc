#include "scheduler/followed.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"

namespace muster::scheduler {
namespace {

constexpr Duration kComplaint = std::chrono::seconds(30);

}  // namespace

std::vector<std::string> Followed::unknown() const {
  std::vector<std::string> names;
  for (const auto& [informer, kind] : kinds_) {
    if (!informer->synced())
      names.push_back(kind.group.empty() ? kind.plural : kind.plural + "." + kind.group);
  }
  return names;
}

bool Followed::all_known() const {
  return std::all_of(
      kinds_.begin(), kinds_.end(), [](const auto& each) { return each.first->synced(); });
}

void Followed::complain_later() {
  timer_ = env_.after(kComplaint, [this] {
    if (all_known()) return;
    log::warn(
        "scheduler", "scheduling starts when these kinds are known: {}", join(unknown(), ", "));
    complain_later();
  });
}

}  // namespace muster::scheduler
