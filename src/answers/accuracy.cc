#include "answers/accuracy.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace muster::answers {
namespace {

constexpr Duration kBetween = std::chrono::hours(2);

Basis basis_named(const std::string& name) {
  for (const Basis basis : {Basis::kLearned, Basis::kKnown}) {
    if (basis_name(basis) == name) return basis;
  }
  return Basis::kNone;
}

std::optional<Time> present(Time time) { return time ? std::optional<Time>(time) : std::nullopt; }

}  // namespace

void judge_by_basis(const Record& record, std::map<std::string, Judged>& by_basis) {
  for (const Foretold& said : record.said) {
    // The run that began after it was said.
    const auto run = std::find_if(record.runs.begin(), record.runs.end(), [&](const Run& one) {
      return one.start >= whole_seconds(said.at);
    });
    if (run == record.runs.end()) continue;
    const auto seconds = [&](Time time) {
      return static_cast<double>((time - said.at).count()) / 1e6;
    };
    if (seconds(run->start) < Tally::kLeast) continue;
    Judged& judged = by_basis[said.basis];
    if (!said.p50) {
      ++judged.unanswered;
      continue;
    }
    const auto or_horizon = [&](Time time) {
      return time ? seconds(time) : static_cast<double>(Ask{}.horizon.count()) / 1e6;
    };
    judged.tally.add({or_horizon(said.p10), seconds(said.p50), or_horizon(said.p90)},
                     seconds(run->start));
  }
}

void Accuracy::widen(Forecasts& forecasts, Time asked) const {
  for (Forecast& one : forecasts.jobs)
    one.start.range =
        calibration_.widen({one.start.basis, asked, asked - one.since, one.start.range});
}

void Accuracy::judge_started(
    const std::function<std::optional<Record>(const std::string& uid)>& find) {
  for (const std::string& uid : std::exchange(turned_, {})) {
    const auto record = find(uid);
    const bool started = record && !record->said.empty() && !record->runs.empty() &&
                         record->runs.back().start >= whole_seconds(record->said.back().at);
    if (started) judge_run(*record, record->runs.size() - 1);
    if (started || !record || record->over()) open_.erase(uid);
  }
}

void Accuracy::judge(const Record& record) {
  for (std::size_t run = 0; run < record.runs.size(); ++run) judge_run(record, run);
}

/// By what was said in the wait before it.
void Accuracy::judge_run(const Record& record, std::size_t run) {
  const Time start = record.runs[run].start;
  std::optional<Time> last;  // that counted
  for (const Foretold& said : record.said) {
    const bool before = whole_seconds(said.at) <= start;
    if (!before || (run > 0 && said.at < record.runs[run - 1].start)) continue;
    const Basis basis = basis_named(said.basis);
    if (basis == Basis::kNone || (last && *last + kBetween > said.at)) continue;
    last = said.at;
    const Quantiles range{present(said.p10), present(said.p50), present(said.p90)};
    calibration_.judge({basis, said.at, said.at - record.submitted, range}, start);
    ++judged_;
    // What is absent lay beyond the horizon.
    const bool inside =
        range.p10 && start >= whole_seconds(*range.p10) && (!range.p90 || start <= *range.p90);
    held_ += inside ? 1 : 0;
    if (range.p50) {
      const auto seconds = [](Duration one) { return static_cast<double>(one.count()) / 1e6; };
      const double waited = std::max(seconds(start - said.at), Tally::kLeast);
      errors_.push_back(std::abs(seconds(*range.p50 - start)) / waited);
      if (errors_.size() > kErrorsMax) errors_.pop_front();
    }
  }
}

double Accuracy::error() const {
  if (errors_.empty()) return 0;
  std::vector<double> sorted(errors_.begin(), errors_.end());
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

}  // namespace muster::answers
