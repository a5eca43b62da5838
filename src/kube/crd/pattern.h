/// Regular expressions of CRD schemas, as Go reads them: RE2, in time that grows with the text
/// alone. Compiled once each; the only place that includes RE2.
#pragma once

#include <string>
#include <string_view>

namespace muster::kube {

/// True when `text` contains a match. A pattern that does not compile matches everything (parse_crd
/// refuses it).
bool pattern_matches(const std::string& pattern, std::string_view text);
bool pattern_compiles(const std::string& pattern);

}  // namespace muster::kube
