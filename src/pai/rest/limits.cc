#include "pai/rest/limits.h"

namespace muster::pai::rest {
namespace {

constexpr std::size_t kKnownMax = 20'000;

}  // namespace

Duration RateLimit::ask(const std::string& who, Duration now) {
  if (windows_.size() >= kKnownMax) {
    std::erase_if(windows_, [&](const auto& each) { return each.second.begun + window_ <= now; });
    // Everybody at once: rather let them in than keep a table without end.
    if (windows_.size() >= kKnownMax) windows_.clear();
  }
  Window& window = windows_[who];
  if (window.count == 0 || window.begun + window_ <= now) window = {now, 0};
  if (window.count >= most_) return window.begun + window_ - now;
  ++window.count;
  return Duration::zero();
}

}  // namespace muster::pai::rest
