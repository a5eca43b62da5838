/// Mistakes put into the plan, or between the world and the engine, on purpose: the checks must
/// find each as what it is.
#pragma once

#include <vector>

#include "engine/engine.h"
#include "model.h"

namespace muster::dst {

enum class Fault {
  kNone,
  kDevice,
  kGang,
  kNode,
  kLimit,
  kEvict,
  kEvictGang,
  kReserve,
  kHeld,
  kForget,
  kLost,
  kTwin,
  kClone,
  kAsk  ///< Of forecasts that leave a trace.
};

struct NamedFault {
  Fault fault;
  const char* name;
  std::vector<const char*> found_as;  ///< Any of these in the failure.
};

const std::vector<NamedFault>& faults();

/// Makes the mistake as soon as the plan gives occasion to.
void plant(Fault fault, const Model& model, engine::Plan& plan);

}  // namespace muster::dst
