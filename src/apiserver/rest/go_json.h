/// JSON syntax errors in the words of Go's decoder, which is what clients of Kubernetes know.
#pragma once

#include <string>
#include <string_view>

namespace muster::apiserver {

/// The first syntax error of `text`, e.g. "invalid character 'b' looking for beginning of object
/// key string"; empty when the text is one JSON value.
std::string go_json_error(std::string_view text);

}  // namespace muster::apiserver
