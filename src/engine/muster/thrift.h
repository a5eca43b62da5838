/// Makes a plan of evictions cheaper once all members have their places: gives back what turned out
/// not to be needed, and where few pods are in question looks for less than that.
#pragma once

#include "engine/muster/seating.h"
#include "engine/muster/victims.h"

namespace muster::engine {

/// Gives back victims whose leaving is not needed, the most important first. What `base` holds
/// stays.
void give_back(
    const State& state, Seating& seating, Wish& wish, const EvictionPlan& base, EvictionPlan& plan);

/// Looks through sets of victims, fewer pods first, for one that costs less than the plan. Bounded
/// in pods and sets.
void search_cheaper(
    const State& state, Seating& seating, Wish& wish, const EvictionPlan& base, EvictionPlan& plan);

}  // namespace muster::engine
