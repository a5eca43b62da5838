/// A question to the engine: what if this were so, would the gang start now?
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "engine/model/event.h"
#include "engine/model/plan.h"
#include "engine/model/reason.h"

namespace muster::engine {

struct Trial {
  std::string gang;           ///< Key of the one that is asked about.
  std::vector<Event> events;  ///< What would be different, in order.
  Time now;
};

enum class Verdict : std::uint8_t {
  kStarts,
  kEvicts,  ///< Once those have left that must make way.
  kWaits,
  kNever,  ///< It waits for something that no end of other work brings.
};

struct TrialResult {
  Verdict verdict = Verdict::kWaits;
  std::vector<Bind> binds;    ///< Of its own pods.
  std::vector<Evict> evicts;  ///< For it.
  Refusal refusal;            ///< Of one that waits.
};

/// No end of other work removes such a reason.
bool is_never(Reason reason);

}  // namespace muster::engine
