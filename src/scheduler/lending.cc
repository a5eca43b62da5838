#include "scheduler/lending.h"

#include <utility>

namespace muster::scheduler {
namespace {

/// A copy that was put off so often is made on the loop: somebody looks at the engine all the time.
constexpr int kTries = 5;

}  // namespace

Task<void> Lending::copy(std::function<void(engine::Engine)> take, Back back) {
  const Gate::Pass pass(gate_);
  while (copying_) (void)co_await free_->wait(Duration::zero());
  copying_ = true;
  bool made = false;
  for (int tries = 0; tries < kTries && !made && !gate_.closed(); ++tries) {
    const auto copied = std::make_shared<std::unique_ptr<engine::Engine>>();
    loan_.offer();
    co_await env_.run_on_worker([turn = loan_.turn(), copied, &engine = engine_] {
      turn([&] { *copied = std::make_unique<engine::Engine>(engine.clone()); });
    });
    made = loan_.take_back();
    if (made) take(std::move(**copied));
    for (const engine::Event& event : std::exchange(kept_, {})) back.tell(event);
  }
  if (!made && !gate_.closed()) take(engine_.clone());
  copying_ = false;
  free_->notify();
  back.wake();
}

Task<void> Lending::stop() {
  gate_.close();
  (void)co_await gate_.wait_empty(Duration::zero());
}

}  // namespace muster::scheduler
