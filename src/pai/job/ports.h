/// The ports of a task: chosen by its pod's uid, so that everybody can compute them and nobody has
/// to remember them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::pai {

/// The ports of tasks lie from here to there, as in OpenPAI; the last one is never chosen.
inline constexpr int kPortFirst = 15000, kPortLast = 39999;

/// Ports 0 … count - 1 of `label`. OpenPAI's formula: of the MD5 of "[uid][label][k]" the
/// hexadecimal digits 0-11, 12-23 and 24-31 are three numbers; their sum modulo the length of the
/// range is the place in it.
std::vector<int> ports_of(std::string_view pod_uid, std::string_view label, int count);

/// "15321,20011".
std::string ports_text(std::string_view pod_uid, std::string_view label, int count);

}  // namespace muster::pai
