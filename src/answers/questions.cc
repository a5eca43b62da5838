#include "answers/questions.h"

#include <fmt/core.h>

#include <algorithm>

namespace muster::answers {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(50);

}  // namespace

Questions::Slot::Slot(Questions& all, std::string user) : all_(&all), user_(std::move(user)) {
  ++all.total_;
  ++all.asking_[user_];
}

Questions::Slot& Questions::Slot::operator=(Slot&& other) noexcept {
  if (this != &other) {
    leave();
    all_ = std::exchange(other.all_, nullptr);
    user_ = std::move(other.user_);
  }
  return *this;
}

void Questions::Slot::leave() {
  if (all_ == nullptr) return;
  --all_->total_;
  if (--all_->asking_[user_] <= 0) all_->asking_.erase(user_);
  all_->left_->notify();
  all_ = nullptr;
}

bool Questions::full(const std::string& user) const {
  return total_ >= kMost || (!user.starts_with("system:muster") && asking_.contains(user));
}

Task<Result<Questions::Slot>> Questions::enter(std::string user, Duration patience) {
  const Duration until = env_.monotonic() + patience;
  while (full(user) && env_.monotonic() < until) (void)co_await left_->wait(kLook);
  if (full(user)) {
    Error error;
    error.code = Code::kTooManyRequests;
    error.message =
        total_ >= kMost
            ? fmt::format("{} questions are being worked on; ask again in a moment", total_)
            : "your last question is still being worked on; ask again when it is answered";
    error.retry_after_s = 2;
    co_return fail(std::move(error));
  }
  co_return Slot(*this, std::move(user));
}

std::shared_ptr<Questions::Later> Questions::begin(std::string user) {
  const Duration now = env_.monotonic();
  std::erase_if(later_, [&](const auto& one) { return now - one.second->since > kKeptFor; });
  if (later_.size() >= kKept) {
    const auto oldest = std::min_element(later_.begin(), later_.end(), [](auto& a, auto& b) {
      return a.second->since < b.second->since;
    });
    later_.erase(oldest);
  }
  auto made = std::make_shared<Later>();
  made->id = fmt::format("{:016x}", env_.random());
  made->user = std::move(user);
  made->since = now;
  made->ended = env_.make_signal();
  later_[made->id] = made;
  return made;
}

std::shared_ptr<Questions::Later> Questions::find(const std::string& id, const std::string& user) {
  const auto found = later_.find(id);
  return found == later_.end() || found->second->user != user ? nullptr : found->second;
}

}  // namespace muster::answers
