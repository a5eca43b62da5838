#include "minimise.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "base/strings.h"

namespace muster::dst {

namespace {

/// What a failure is about: its words without names and numbers.
std::string rule_of(const std::string& failure) {
  std::string rule;
  for (const auto& word : split_nonempty(failure.substr(0, failure.find(':')), ' ')) {
    if (std::none_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; }))
      rule += word + " ";
  }
  return rule;
}

}  // namespace

void minimise(const Run& failed, const Failure& failure) {
  const std::int64_t steps = failure.step + 1;
  const std::string rule = rule_of(failure.text);
  Run run = failed;
  run.steps = steps;
  run.thorough = true;
  run.trace = false;
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (std::int64_t chunk = std::max<std::int64_t>(steps / 2, 1); chunk >= 1; chunk /= 2) {
      for (std::int64_t from = 0; from + chunk <= steps; from += chunk) {
        Run trial = run;
        for (std::int64_t i = from; i < from + chunk; ++i) trial.skipped.insert(i);
        if (trial.skipped.size() == run.skipped.size()) continue;
        const auto other = make_world(trial)->go();
        if (!other || rule_of(other->text) != rule) continue;
        run.skipped = std::move(trial.skipped);
        smaller = true;
      }
    }
  }
  std::string kept;
  for (std::int64_t i = 0; i < steps; ++i) {
    if (!run.skipped.contains(i)) kept += fmt::format("{}{}", kept.empty() ? "" : ",", i);
  }
  const auto why = make_world(run)->go();
  fmt::print("smallest: --world {} --seed {} --only {}: {}\n",
             name_of(run.kind),
             run.seed,
             kept,
             why ? why->text : "(passes)");
}

}  // namespace muster::dst
