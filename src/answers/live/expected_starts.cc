#include "answers/live/expected_starts.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "kube/answer_names.h"
#include "kube/resources.h"

namespace muster::answers {
namespace {

constexpr Duration kLook = std::chrono::milliseconds(200);

/// "2026-11-16T11:05Z" of a whole time.
std::string minute(Time time) { return format_time(time).substr(0, 16) + "Z"; }
std::string clock(const std::optional<Time>& time) {
  return time ? format_time(*time).substr(11, 5) : "later";
}

const kube::Resource* resource_of(std::string_view prefix) {
  if (prefix == "volcano") return &kube::resources::kPodGroups;
  if (prefix == "native") return &kube::resources::kNativePodGroups;
  if (prefix == "plugins") return &kube::resources::kSchedulerPluginsPodGroups;
  return prefix == "t9k" ? &kube::resources::kT9kPodGroups : nullptr;
}

}  // namespace

std::optional<std::string> expected_start_text(const Start& start) {
  if (start.basis == Basis::kNone || !start.range.p50) return std::nullopt;
  return fmt::format("{} {}/{} {}",
                     minute(*start.range.p50),
                     clock(start.range.p10),
                     clock(start.range.p90),
                     basis_name(start.basis));
}

void ExpectedStarts::note(OutlookPtr outlook) {
  if (gate_.closed()) return;
  next_ = std::move(outlook);
  if (working_) return;
  working_ = true;
  env_.spawn(work());
}

Task<void> ExpectedStarts::work() {
  const Gate::Pass pass(gate_);
  const Gate::Sleeper sleeper(gate_, *closing_);
  while (next_ && !gate_.closed()) co_await write_all(std::exchange(next_, nullptr));
  working_ = false;
}

bool ExpectedStarts::is_due(const Forecast& forecast, Time now) const {
  const auto told = told_.find(forecast.job);
  const bool tells = expected_start_text(forecast.start).has_value();
  if (told == told_.end()) return tells;
  if (now - told->second.at < options_.rest) return false;
  if (!tells || !told->second.p50) return tells != static_cast<bool>(told->second.p50);
  const Time p50 = *forecast.start.range.p50;
  const Duration moved = p50 > told->second.p50 ? p50 - told->second.p50 : told->second.p50 - p50;
  return moved * 4 > std::max(Duration{}, p50 - now);
}

Task<void> ExpectedStarts::write_all(OutlookPtr outlook) {
  std::set<std::string> waiting;
  for (const Forecast& forecast : outlook->forecasts.jobs) waiting.insert(forecast.job);
  std::erase_if(told_, [&](const auto& one) { return !waiting.contains(one.first); });
  const Duration pause = std::chrono::microseconds(1'000'000 / options_.per_second);
  for (const Forecast& forecast : outlook->forecasts.jobs) {
    if (gate_.closed()) co_return;
    // Pods without a group carry none.
    if (forecast.job.find(':') == std::string::npos || !is_due(forecast, env_.now())) continue;
    while (options_.must_wait && options_.must_wait() && !gate_.closed())
      (void)co_await closing_->wait(kLook);
    if (gate_.closed()) co_return;
    const auto text = expected_start_text(forecast.start);
    told_[forecast.job] = {text ? *forecast.start.range.p50 : Time{}, env_.now()};
    ++writes_;
    co_await options_.write(forecast.job, text);
    (void)co_await closing_->wait(pause);
  }
}

Task<void> ExpectedStarts::stop() {
  gate_.close();
  (void)co_await gate_.wait_empty(std::chrono::seconds(5));
}

std::function<Task<void>(std::string, std::optional<std::string>)> write_annotations(
    client::Client& client) {
  return [&client](std::string gang, std::optional<std::string> value) -> Task<void> {
    const std::size_t colon = gang.find(':'), slash = gang.find('/');
    const kube::Resource* resource = resource_of(gang.substr(0, colon));
    if (resource == nullptr || slash == std::string::npos) co_return;
    json::Value patch = json::Object{};
    json::make(patch, {"metadata", "annotations", kube::names::answers::kExpectedStart}) =
        value ? json::Value(*value) : json::Value(nullptr);
    // One that has gone meanwhile needs none, and the next outlook comes soon.
    (void)co_await client.patch(*resource,
                                gang.substr(colon + 1, slash - colon - 1),
                                gang.substr(slash + 1),
                                "",
                                client::PatchType::kMerge,
                                std::move(patch),
                                client::Answer::kNone);
  };
}

}  // namespace muster::answers
