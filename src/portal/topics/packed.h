/// Columns of the map as short JSON: 10,000 nodes with 80,000 GPUs and 25,000 jobs are sent to
/// everybody who opens it. web/src/shapes/topology.ts says how they are read. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::portal {

/// `[value,count,value,count …]`.
void append_runs(std::string& out, const std::vector<std::int32_t>& values);

/// Texts most of which end in a number: a table of what stands before it, and for each text its place
/// there and how far its number is from the one before. "r00-n00", "r00-n01", "head" are
/// `{"stems":["r00-n","head"],"widths":[2,0],"stem":[0,0,1],"number":[0,1]}`: a stem of width 0 is a
/// text without a number.
void append_names(std::string& out, const std::vector<std::string_view>& texts);

/// Who is on each GPU, k, or for whom it is held, -k; 0: nobody. Jobs are numbered from 1 as they come
/// up. As `{"who":[…],"count":[…]}`, a pair for each run of equal ones: 1 for the job after the
/// highest so far, 2 for the highest, 3 for the one before it …; negative: held for that one.
void append_owners(std::string& out, const std::vector<std::int32_t>& owners);

}  // namespace muster::portal
