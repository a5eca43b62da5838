#include "agent/process/warm_pool.h"

#include "agent/process/messages.h"
#include "base/log.h"

namespace muster::agent::process {

/// An agent that has just begun has better things to do, and often a pod to start.
constexpr Duration kQuietStart = std::chrono::seconds(1);
/// Most come back sooner; one whose network the kernel is slow to clear may not come back at all.
constexpr Duration kPatience = std::chrono::milliseconds(20);

namespace {

Task<bool> becomes_ready(net::Descriptor& socket) {
  for (;;) {
    Message message;
    switch (receive_message(socket.fd(), message)) {
      case Received::kMessage:
        co_return json::string_at(message.body, "ev") == "warm";
      case Received::kClosed:
        co_return false;
      case Received::kNothingYet:
        break;
    }
    const bool open = co_await socket.readable();
    if (!open) co_return false;
  }
}

}  // namespace

WarmPool::WarmPool(net::Loop& loop,
                   std::function<Result<WarmSandbox>()> begin,
                   std::function<void(const WarmSandbox&)> on_lost)
    : loop_(loop),
      begin_(std::move(begin)),
      on_lost_(std::move(on_lost)),
      stopped_(std::make_shared<bool>(false)),
      wanted_(loop.make_signal()) {}

WarmPool::~WarmPool() = default;

void WarmPool::start(std::size_t size, std::size_t kept_max) {
  size_ = size;
  kept_max_ = kept_max;
  if (size_ > 0) loop_.spawn(top_up());
}

void WarmPool::stop() {
  *stopped_ = true;
  for (auto& one : ready_) {
    one.socket->close();
    on_lost_(one);
  }
  ready_.clear();
  wanted_->notify();
  for (const auto& one : waiting_) one->notify();
}

Task<std::optional<WarmSandbox>> WarmPool::take() {
  const auto stopped = stopped_;
  if (ready_.empty() && resting_ + ending_ > waiting_.size()) {
    const std::shared_ptr<Signal> comes_back = loop_.make_signal();
    waiting_.push_back(comes_back);
    co_await comes_back->wait(kPatience);
    if (*stopped) co_return std::nullopt;
    std::erase(waiting_, comes_back);
  }
  if (ready_.empty()) co_return std::nullopt;
  auto one = std::move(ready_.front());
  ready_.pop_front();
  wanted_->notify();
  co_return one;
}

void WarmPool::rest(WarmSandbox one) {
  ++resting_;
  loop_.spawn(wait_for(std::move(one)));
}

Task<void> WarmPool::wait_for(WarmSandbox one) {
  const auto stopped = stopped_;
  const bool ready = co_await becomes_ready(*one.socket);
  if (*stopped) co_return;
  --resting_;
  if (!ready) {
    on_lost_(one);
    co_return;
  }
  ready_.push_back(std::move(one));
  if (waiting_.empty()) co_return;
  waiting_.front()->notify();
  waiting_.pop_front();
}

Task<void> WarmPool::top_up() {
  const auto stopped = stopped_;
  const auto begin = loop_.monotonic() + kQuietStart;
  while (!*stopped && loop_.monotonic() < begin) co_await wanted_->wait(begin - loop_.monotonic());
  while (!*stopped) {
    if (busy_ > 0 || ready_.size() >= size_) {
      co_await wanted_->wait(Duration::zero());
      continue;
    }
    auto begun = begin_();
    if (!begun) {
      log::warn("agent", "no sandboxes are made ahead: {}", begun.error().message);
      co_return;
    }
    auto one = std::move(*begun);
    const bool ready = co_await becomes_ready(*one.socket);
    if (*stopped) co_return;
    if (!ready) {  // the next pod will find out why and say so
      log::warn("agent", "no sandboxes are made ahead: creating one failed");
      co_return;
    }
    ready_.push_back(std::move(one));
  }
}

}  // namespace muster::agent::process
