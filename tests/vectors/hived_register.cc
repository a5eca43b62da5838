// HiveD's formats in the runner, and the count of exact and equivalent steps at the end.

#include <fmt/core.h>

#include <filesystem>

#include "hived.h"

namespace muster::vectors {
namespace {

/// How much was the original's own choice, and how much merely as good.
struct Tally {
  int exact = 0;
  int equivalent = 0;
};

Tally& tally() {
  static Tally one;
  return one;
}

void summary() {
  if (tally().exact + tally().equivalent > 0)
    fmt::print("hived steps: {} exact, {} equivalent\n", tally().exact, tally().equivalent);
}

bool is_extender(const json::Value& file) {
  if (!json::at(file, "configExtra").is_null()) return true;
  for (const json::Value& step : json::array_at(file, "steps")) {
    const std::string_view op = json::string_at(step, "op");
    if (op == "http" || op == "setBindStatus" || op.starts_with("node") || op.starts_with("pod"))
      return true;
  }
  return false;
}

bool is_algorithm(const json::Value& file) {
  const auto& steps = json::array_at(file, "steps");
  return !steps.empty() && json::at(steps[0], "op").is_string();
}

bool claims(const std::string& path, const json::Value& file) {
  if (is_algorithm(file)) return true;
  if (std::filesystem::path(path).parent_path().filename() == "hived" || is_extender(file))
    return true;
  return !json::at(file, "expectConfigError").is_null() || !json::at(file, "chainOrder").is_null();
}

Failures run(const std::string& path, const json::Value& file) {
  HivedOutcome outcome =
      is_extender(file) ? run_hived_extender(path, file) : run_hived_algorithm(path, file);
  tally().exact += outcome.exact;
  tally().equivalent += outcome.equivalent;
  if (outcome.equivalent > 0)
    fmt::print("{}: {} steps equivalent, not exact; first {}\n",
               path,
               outcome.equivalent,
               outcome.first_equivalent);
  return std::move(outcome.failures);
}

const Registration registration(Format{"hived", claims, run, summary});

}  // namespace
}  // namespace muster::vectors
