#include "answers/live/sayings.h"

#include <fmt/core.h>

#include <algorithm>

#include "answers/visitor.h"
#include "base/strings.h"

namespace muster::answers {
namespace {

constexpr Duration kEvery = std::chrono::hours(2);
/// Below this nobody minds.
constexpr Duration kLeast = std::chrono::minutes(1);
constexpr std::size_t kTogether = 200;
/// Of those ahead, who are looked at for one that is new.
constexpr int kAheadMax = 64;

Foretold foretold(const Forecast& forecast) {
  Foretold said;
  said.at = forecast.asked;
  said.basis = basis_name(forecast.start.basis);
  if (forecast.start.basis == Basis::kNone) return said;
  said.p10 = forecast.start.range.p10.value_or(Time{});
  said.p50 = forecast.start.range.p50.value_or(Time{});
  said.p90 = forecast.start.range.p90.value_or(Time{});
  return said;
}

}  // namespace

bool is_news(const std::optional<Foretold>& last, const Forecast& forecast) {
  const Foretold next = foretold(forecast);
  if (!last) return static_cast<bool>(next.p50);
  if (next.at - last->at >= kEvery) return true;
  if (static_cast<bool>(last->p50) != static_cast<bool>(next.p50)) return true;
  if (!next.p50) return false;
  const Duration before = std::max(Duration{}, last->p50 - next.at) + kLeast;
  const Duration after = std::max(Duration{}, next.p50 - next.at) + kLeast;
  return after > 2 * before || before > 2 * after;
}

std::string Sayings::reason_of(const Outlook& outlook,
                               const Forecast& forecast,
                               const std::string& ns,
                               Time since) const {
  std::vector<std::string> before;
  const auto ahead = static_cast<std::size_t>(std::clamp(forecast.place - 1, 0, kAheadMax));
  for (engine::WaitView& one : outlook.copy->waiting(forecast.queue, ahead))
    before.push_back(std::move(one.key));
  for (const WaitsFor& one : forecast.waits_for) before.push_back(one.job);
  for (const std::string& gang : before) {
    const auto view = outlook.copy->gang(gang);
    if (!view) continue;
    const std::string job = recorder_.job_of_gang(gang);
    // A reader of this record need not be one of another namespace's.
    const std::string name =
        job.starts_with(ns + "/") ? job.substr(job.rfind('/') + 1) : std::string(kAnothersJob);
    // Whole seconds are all that objects say of when they were made.
    if (view->created + std::chrono::seconds(1) > since)
      return fmt::format("{} was submitted ahead of it", name);
    if (view->started && view->declared.count() > 0 &&
        view->started + view->declared < outlook.asked)
      return fmt::format("{} runs longer than it declared", name);
  }
  return "";
}

Task<void> Sayings::note(OutlookPtr outlook) {
  const Gate::Pass pass(gate_);
  std::size_t looked = 0;
  for (const Forecast& forecast : outlook->forecasts.jobs) {
    if (++looked % kTogether == 0) co_await env_.sleep(Duration::zero());
    if (gate_.closed()) co_return;
    if (forecast.state != State::kWaits) continue;
    const std::string job = recorder_.job_of_gang(forecast.job);
    const Tracked* tracked = recorder_.tracker().find(job);
    if (tracked == nullptr || !tracked->noted) continue;
    std::optional<Foretold> last;
    if (!tracked->record.said.empty()) last = tracked->record.said.back();
    if (!is_news(last, forecast)) continue;
    Foretold said = foretold(forecast);
    if (last) said.because = reason_of(*outlook, forecast, job.substr(0, job.find('/')), last->at);
    if (recorder_.tracker().said(job, std::move(said)) && said_) said_(*tracked);
  }
}

Task<void> Sayings::stop() {
  gate_.close();
  (void)co_await gate_.wait_empty(std::chrono::seconds(5));
}

}  // namespace muster::answers
