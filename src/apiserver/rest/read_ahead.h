/// Bodies on their way to a value. Reading a large one takes longer than the loop may stand still,
/// so it is read on a worker before the request is handled; small ones are read where they are
/// needed. Either way the functions below give the value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/core.h"

namespace muster::apiserver {

/// A body of this size is read on a worker. No smaller one can have too many values.
inline constexpr std::size_t kReadAheadFrom = 32 * 1024;
/// Handling an object takes a microsecond or so for each value in it, on the loop. Definitions of
/// kinds are the largest objects there are, and administrators' own.
inline constexpr std::size_t kValuesMax = 20'000;
inline constexpr std::size_t kDefinitionValuesMax = 100'000;

/// Reads the body of the call on a worker if it is large. One with too many values becomes an error
/// of kTooLarge.
Task<void> read_ahead(Core& core, Call& call);

/// Whether what is written is so large that it is handled on a worker as far as it can be.
[[nodiscard]] bool is_large(const Call& call);

/// The body as JSON, as YAML, as protobuf. `duplicates` may be null.
Result<json::Value> json_body(const Call& call, std::vector<std::string>* duplicates);
Result<json::Value> yaml_body(const Call& call);
Result<json::Value> protobuf_body(const Call& call);

}  // namespace muster::apiserver
