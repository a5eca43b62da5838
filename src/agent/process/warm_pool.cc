#include "agent/process/warm_pool.h"

#include "agent/process/messages.h"
#include "base/log.h"

namespace muster::agent::process {

/// An agent that has just begun has better things to do, and often a pod to start.
constexpr Duration kQuietStart = std::chrono::seconds(1);

WarmPool::WarmPool(net::Loop& loop, std::function<Result<WarmSandbox>()> begin)
    : loop_(loop), begin_(std::move(begin)), wanted_(loop.make_signal()) {}

WarmPool::~WarmPool() = default;

void WarmPool::start(std::size_t size) {
  size_ = size;
  if (size_ > 0) loop_.spawn(top_up());
}

std::vector<std::uint32_t> WarmPool::stop() {
  stopping_ = true;
  std::vector<std::uint32_t> addresses;
  for (auto& one : ready_) {
    one.socket->close();
    addresses.push_back(one.address);
  }
  ready_.clear();
  wanted_->notify();
  return addresses;
}

std::optional<WarmSandbox> WarmPool::take() {
  if (ready_.empty()) return std::nullopt;
  auto one = std::move(ready_.front());
  ready_.pop_front();
  wanted_->notify();
  return one;
}

Task<void> WarmPool::top_up() {
  const auto begin = loop_.monotonic() + kQuietStart;
  while (!stopping_ && loop_.monotonic() < begin)
    co_await wanted_->wait(begin - loop_.monotonic());
  while (!stopping_) {
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
    const bool ready = co_await becomes_ready(one);
    if (stopping_) co_return;
    if (!ready) {  // the next pod will find out why and say so
      log::warn("agent", "no sandboxes are made ahead: one could not be made");
      co_return;
    }
    ready_.push_back(std::move(one));
  }
}

Task<bool> WarmPool::becomes_ready(WarmSandbox& one) {
  for (;;) {
    Message message;
    switch (receive_message(one.socket->fd(), message)) {
      case Received::kMessage:
        co_return json::as_string(json::at(message.body, "ev")) == "warm";
      case Received::kClosed:
        co_return false;
      case Received::kNothingYet:
        break;
    }
    const bool open = co_await one.socket->readable();
    if (!open) co_return false;
  }
}

}  // namespace muster::agent::process
