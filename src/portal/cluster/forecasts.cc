#include "portal/cluster/forecasts.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace muster::portal {
namespace {

/// "volcano:ns/name" is ns/name to everybody else.
std::string plain(const std::string& key) {
  const auto colon = key.find(':');
  return colon == std::string::npos ? key : key.substr(colon + 1);
}

Millis millis(const std::optional<Time>& time) { return time ? time->us / 1000 : 0; }

/// In which of steps that grow by a quarter it lies: near things are told exactly, far ones roughly.
/// Courses differ a little each time, and whoever is far down the line is not told of every step.
std::int64_t roughly(std::int64_t number) {
  return number <= 8
             ? number
             : 8 + static_cast<std::int64_t>(std::log2(static_cast<double>(number) / 8) * 4);
}

}  // namespace

void Forecasts::want() {
  if (!ask_ || asking_ || gate_.closed()) return;
  if (ever_ && env_.monotonic() - asked_ < kEvery) return;
  asking_ = ever_ = true;
  env_.spawn(renew());
}

Task<void> Forecasts::renew() {
  const Gate::Pass pass(gate_);
  auto outlook = co_await ask_();
  asked_ = env_.monotonic();
  if (outlook && (!book_ || book_->outlook != *outlook)) {
    auto book = std::make_shared<Book>();
    book->outlook = *outlook;
    // A hundred thousand names take some milliseconds, which the loop need not spend.
    co_await env_.run_on_worker([&book] {
      const answers::Forecasts& all = book->outlook->forecasts;
      book->jobs.reserve(all.jobs.size());
      for (const answers::Forecast& one : all.jobs) book->jobs.try_emplace(plain(one.job), &one);
    });
    std::shared_ptr<const Book> before = std::exchange(book_, std::move(book));
    ++version_;
    if (on_change) on_change();
    // With it may go a whole engine.
    co_await env_.run_on_worker([&before] { before.reset(); });
  }
  asking_ = false;
}

const answers::Forecast* Forecasts::find(const std::string& key) const {
  if (!book_) return nullptr;
  const auto found = book_->jobs.find(key);
  return found == book_->jobs.end() ? nullptr : found->second;
}

Duration Forecasts::declared(const answers::Forecast& forecast) const {
  if (!book_ || !book_->outlook->copy) return {};
  const auto gang = book_->outlook->copy->gang(forecast.job);
  return gang ? gang->declared : Duration();
}

Task<void> Forecasts::stop() {
  gate_.close();
  const bool empty = co_await gate_.wait_empty(std::chrono::seconds(5));
  (void)empty;
}

Told told_of(const answers::Forecast& forecast) {
  Told told;
  told.place = forecast.place;
  told.of = forecast.of;
  told.basis = forecast.start.basis;
  if (told.basis == answers::Basis::kNone || !forecast.start.range.p50) {
    told.basis = answers::Basis::kNone;
    return told;
  }
  told.start = millis(forecast.start.range.p50);
  told.low = millis(forecast.start.range.p10);
  told.high = millis(forecast.start.range.p90);
  return told;
}

std::uint64_t mark_of(const Told& told, Millis now) {
  std::uint64_t mark = 0xcbf29ce484222325ULL;
  const auto add = [&mark](std::int64_t number) {
    mark = (mark ^ static_cast<std::uint64_t>(number)) * 0x100000001b3ULL;
  };
  add(roughly(told.place));
  add(static_cast<std::int64_t>(told.basis));
  // Against a clock that goes in steps of a minute: what stays where it is comes nearer all the same.
  constexpr Millis kMinute = 60'000;
  for (const Millis time : {told.start, told.low, told.high})
    add(time == 0 ? -1 : roughly(std::max<Millis>(0, time - now / kMinute * kMinute) / 15'000));
  return mark;
}

}  // namespace muster::portal
