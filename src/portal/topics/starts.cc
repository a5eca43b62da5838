#include "portal/topics/starts.h"

#include "portal/topics/waiting.h"

namespace muster::portal {
namespace {

/// How long one step may hold the loop, and how soon the next one follows.
constexpr Duration kStep = std::chrono::milliseconds(4);
constexpr Duration kPause = std::chrono::milliseconds(1);

}  // namespace

void Starts::want() {
  if (timer_ || stopped_ || done_ == forecasts_.version()) return;
  doing_ = forecasts_.version();
  since_ = jobs_.table().version();
  ahead_.assign(jobs_.table().slots(), {});
  next_ = 0;
  step();
}

void Starts::stop() {
  stopped_ = true;
  timer_.reset();
}

void Starts::step() {
  timer_.reset();
  const Duration begun = env_.monotonic();
  for (; next_ < ahead_.size(); ++next_) {
    if (next_ % 64 == 63 && env_.monotonic() - begun >= kStep) {
      timer_ = env_.after(kPause, [this] { step(); });
      return;
    }
    const auto slot = static_cast<Slot>(next_);
    const Keys& keys = jobs_.table().keys(slot);
    const JobIndex::Entry* entry = jobs_.at(slot);
    if (!keys.used || keys.state != State::kWaiting || entry == nullptr) continue;
    const answers::Forecast* forecast = forecast_of(forecasts_, *entry);
    if (forecast == nullptr) continue;
    const Told told = told_of(*forecast);
    ahead_[next_] = {told.start, told.place};
  }
  done_ = doing_;
  jobs_.table().expect(std::move(ahead_), since_);
  if (on_change) on_change();
}

}  // namespace muster::portal
