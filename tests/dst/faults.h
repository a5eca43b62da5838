/// Mistakes put into the plan, or between the world and the engine, on purpose: the checks must
/// find each and name it correctly.
#pragma once

#include <cstdint>
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
  /// Of forecasts that leave a trace.
  kAsk,
  // Of cells.
  kRefuse,
  kRank,
  kWrongVictim
};

enum class Kind : std::uint8_t;

struct NamedFault {
  Kind kind;
  Fault fault;
  const char* name;
  /// Any of these in the failure.
  std::vector<const char*> found_as;
};

const std::vector<NamedFault>& faults();

/// Makes the mistake as soon as the plan gives occasion to.
void plant(Fault fault, const Model& model, engine::Plan& plan);

}  // namespace muster::dst
