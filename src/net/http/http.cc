#include "net/http/http.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "base/strings.h"

namespace muster::net {
namespace {

bool same_name(std::string_view a, std::string_view b) {
  // Mostly of another length, or written alike.
  if (a.size() != b.size()) return false;
  if (std::memcmp(a.data(), b.data(), a.size()) == 0) return true;
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    const auto lower = [](unsigned char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<unsigned char>(c + 32) : c;
    };
    return lower(x) == lower(y);
  });
}

bool has_control(std::string_view text) {
  return std::any_of(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

tl::unexpected<Error> bad_target(std::string_view target, std::string_view why) {
  constexpr std::size_t kShownMax = 200;
  return fail(Code::kBadRequest,
              fmt::format("request target {}: {}", quoted(target.substr(0, kShownMax)), why));
}

/// Fills path and segments. Segments are decoded one by one, so an escaped slash cannot make a new
/// one.
Result<void> parse_path(std::string_view target, std::string_view raw, Target& out) {
  std::size_t start = 1;
  out.path.reserve(raw.size());
  out.segments.reserve(8);  // as many as nearly every path of the API has
  while (start <= raw.size()) {
    const auto end = std::min(raw.find('/', start), raw.size());
    const auto piece = raw.substr(start, end - start);
    auto segment = percent_decode(piece, /*plus_is_space=*/false);
    if (!segment)
      return bad_target(target, fmt::format("broken escape in {}, wanted %XX", quoted(piece)));
    if (has_control(*segment))
      return bad_target(target, "control characters are not allowed in a path");
    if (segment->find('/') != std::string::npos)
      return bad_target(target, "an escaped slash is not allowed in a path");
    if (*segment == "." || *segment == "..")
      return bad_target(target, "\".\" and \"..\" are not allowed in a path");
    out.path += '/';
    out.path += *segment;
    if (!segment->empty()) out.segments.push_back(std::move(*segment));
    start = end + 1;
  }
  return {};
}

Result<void> parse_query(std::string_view target, std::string_view raw, Target& out) {
  std::size_t start = 0;
  while (start < raw.size()) {
    const auto end = std::min(raw.find('&', start), raw.size());
    const auto piece = raw.substr(start, end - start);
    start = end + 1;
    if (piece.empty()) continue;
    const auto equals = piece.find('=');
    auto key = percent_decode(piece.substr(0, equals), /*plus_is_space=*/true);
    auto value = equals == std::string_view::npos ? std::string()
                                                  : percent_decode(piece.substr(equals + 1), true);
    if (!key || !value)
      return bad_target(
          target, fmt::format("broken escape in query parameter {}, wanted %XX", quoted(piece)));
    if (key->find('\0') != std::string::npos || value->find('\0') != std::string::npos) {
      return bad_target(target, "NUL is not allowed in a query");
    }
    out.query.emplace_back(std::move(*key), std::move(*value));
  }
  return {};
}

}  // namespace

void Headers::add(std::string name, std::string value) {
  if (fields_.empty()) fields_.reserve(4);  // an answer's; to grow one by one costs more
  fields_.emplace_back(std::move(name), std::move(value));
}

void Headers::set(std::string name, std::string value) {
  std::erase_if(fields_, [&](const auto& field) { return same_name(field.first, name); });
  add(std::move(name), std::move(value));
}

std::string_view Headers::get(std::string_view name) const {
  for (const auto& [key, value] : fields_) {
    if (same_name(key, name)) return value;
  }
  return {};
}

bool Headers::has(std::string_view name) const {
  return std::any_of(fields_.begin(), fields_.end(), [&](const auto& field) {
    return same_name(field.first, name);
  });
}

std::vector<std::string_view> Headers::all(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const auto& [key, value] : fields_) {
    if (same_name(key, name)) values.push_back(value);
  }
  return values;
}

std::string_view Target::get(std::string_view key) const {
  for (const auto& [name, value] : query) {
    if (name == key) return value;
  }
  return {};
}

bool Target::has(std::string_view key) const {
  return std::any_of(
      query.begin(), query.end(), [&](const auto& pair) { return pair.first == key; });
}

std::vector<std::string> Target::all(std::string_view key) const {
  std::vector<std::string> values;
  for (const auto& [name, value] : query) {
    if (name == key) values.push_back(value);
  }
  return values;
}

Result<Target> parse_target(std::string_view target) {
  if (target.empty() || target.front() != '/')
    return bad_target(target, "wanted a path that begins with \"/\"");
  Target out;
  const auto fragment = target.find('#');
  if (fragment != std::string_view::npos)
    return bad_target(target, "\"#\" is not allowed, write it as %23");
  const auto mark = target.find('?');
  auto path = parse_path(target, target.substr(0, mark), out);
  if (!path) return tl::unexpected(std::move(path.error()));
  if (mark != std::string_view::npos) {
    auto query = parse_query(target, target.substr(mark + 1), out);
    if (!query) return tl::unexpected(std::move(query.error()));
  }
  return out;
}

}  // namespace muster::net
