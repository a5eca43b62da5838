#include "engine/model/trial.h"

namespace muster::engine {

bool is_never(Reason reason) {
  switch (reason) {
    case Reason::kNotEnoughMembers:
    case Reason::kGated:
    case Reason::kGroupMissing:
    case Reason::kParentMissing:
    case Reason::kQueueMissing:
    case Reason::kQueueNotOpen:
    case Reason::kNeverFits:
    case Reason::kInvalidGroup:
      return true;
    default:
      return false;
  }
}

}  // namespace muster::engine
