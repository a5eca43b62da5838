/// Writing JSON text piece by piece, for those who write some of it themselves.
#pragma once

#include <string>
#include <string_view>

#include "json/json.h"

namespace muster::json {

/// True for text that stands in a JSON string as it is: no control character, quote, backslash or
/// DEL.
bool is_plain(std::string_view text);
/// Appends what dump() gives.
void append(std::string& out, const Value& value);
/// Appends the text as a JSON string, quotes included.
void append_string(std::string& out, std::string_view text);
/// Appends the name of a member, put together of two parts, and its colon. The first part is plain
/// text.
void append_key(std::string& out, std::string_view prefix, std::string_view text);

}  // namespace muster::json
