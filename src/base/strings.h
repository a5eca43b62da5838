/// The few string operations that the standard library leaves out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

std::vector<std::string> split(std::string_view text, char separator);
/// Like split, but an empty text gives no parts and empty parts are dropped.
std::vector<std::string> split_nonempty(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string_view trim(std::string_view text);
std::string to_lower(std::string_view text);
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);
std::optional<std::int64_t> parse_int(std::string_view text);
std::string base64_encode(std::string_view bytes);
std::optional<std::string> base64_decode(std::string_view text);
/// URL-safe alphabet, no padding (JWT, continue tokens).
std::string base64url_encode(std::string_view bytes);
std::optional<std::string> base64url_decode(std::string_view text);
/// %XX and, in queries, '+'. nullopt for a broken escape.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space);
std::string percent_encode(std::string_view text);
/// Go's %q: a double-quoted string with escapes.
std::string quoted(std::string_view text);
/// The candidate nearest to `word` (edit distance at most 2), for "did you mean".
std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates);

}  // namespace muster
