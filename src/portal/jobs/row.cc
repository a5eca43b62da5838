#include "portal/jobs/row.h"

#include <array>

namespace muster::portal {

std::string_view phase_name(Phase phase) {
  static constexpr std::array<std::string_view, 7> kNames{
      "", "queued", "reserved", "making-room", "starting", "running", "requeued"};
  return kNames[static_cast<std::size_t>(phase)];
}

}  // namespace muster::portal
