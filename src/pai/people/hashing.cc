#include "pai/people/hashing.h"

namespace muster::pai {

Hashing::Hashing(Env& env) : env_(env), left_(env.make_signal()) {}

Task<Answer<void>> Hashing::run(std::function<void()> work) {
  if (running_ >= kAtOnce) {
    if (waiting_ >= kWaitingMax) {
      Refusal busy{.status = 503,
                   .code = "UnknownError",
                   .message = "too many logins at the moment; try again in a few seconds",
                   .retry_after_s = 5};
      co_return refuse(std::move(busy));
    }
    ++waiting_;
    while (running_ >= kAtOnce) co_await left_->wait(Duration::zero());
    --waiting_;
  }
  ++running_;
  co_await env_.run_on_worker(std::move(work));
  --running_;
  left_->notify();
  co_return Answer<void>();
}

}  // namespace muster::pai
