/// What the state knows of gangs and pods, as those who foretell and rehearse want to see it.
#pragma once

#include <vector>

#include "engine/model/model.h"
#include "engine/model/views.h"
#include "engine/state/state.h"

namespace muster::engine {

/// It has a pod that waits or holds something.
inline bool is_alive(const GangState& gang) {
  return gang.live && gang.pending + gang.bound + gang.releasing > 0;
}
/// Those that wait or run, in the order of first sight. Groups of groups are none of them.
std::vector<GangId> gangs_by_sight(const State& state);
GangView gang_view(const State& state, GangId gang);
/// The pod with the place it has by now. What the engine does not keep, names of devices that are
/// gone, is left out.
Pod pod_as_told(const State& state, PodId pod);

}  // namespace muster::engine
