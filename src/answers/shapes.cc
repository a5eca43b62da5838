#include "answers/shapes.h"

namespace muster::answers {

std::string_view basis_name(Basis basis) {
  switch (basis) {
    case Basis::kLearned:
      return "learned";
    case Basis::kKnown:
      return "known";
    case Basis::kNone:
      break;
  }
  return "none";
}

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kEarlier:
      return "earlier";
    case Verdict::kEvicts:
      return "evicts";
    case Verdict::kStarts:
      break;
  }
  return "starts";
}

}  // namespace muster::answers
