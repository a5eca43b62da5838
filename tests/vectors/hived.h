/// HiveD's two kinds of scenarios: the algorithm called directly, and the HTTP extender.
#pragma once

#include <string>
#include <vector>

#include "json/json.h"
#include "runner.h"

namespace muster::vectors {

struct HivedOutcome {
  Failures failures;
  int exact = 0;       // steps that gave what HiveD gives, cell by cell
  int equivalent = 0;  // steps of the same kind and shape, elsewhere
  std::string first_equivalent;
};

HivedOutcome run_hived_algorithm(const std::string& path, const json::Value& file);
HivedOutcome run_hived_extender(const std::string& path, const json::Value& file);

}  // namespace muster::vectors
