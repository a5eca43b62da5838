#include "pai/protocol/template.h"

#include <fmt/core.h>

#include "base/strings.h"

namespace muster::pai {
namespace {

/// The member that `a[0][1]` names, or nullptr.
const json::Value* step(const json::Value& from, std::string_view part) {
  std::size_t bracket = part.find('[');
  const json::Value* value = &from;
  if (const std::string_view key = part.substr(0, bracket); !key.empty())
    value = &json::at(from, key);
  while (bracket != std::string_view::npos) {
    const std::size_t close = part.find(']', bracket);
    if (close == std::string_view::npos) return nullptr;
    const auto index = parse_int(part.substr(bracket + 1, close - bracket - 1));
    const json::Array& items = json::as_array(*value);
    if (!index || *index < 0 || static_cast<std::size_t>(*index) >= items.size()) return nullptr;
    value = &items[static_cast<std::size_t>(*index)];
    bracket = part.find('[', close);
  }
  return value;
}

std::string look_up(std::string_view tag, const Roots& roots) {
  const std::string written = fmt::format("<%{}%>", tag);
  const std::string_view path = trim(tag);
  if (!path.starts_with('$')) return written;
  const auto parts = split(path.substr(1), '.');
  const std::string_view first = parts[0];
  const auto root = roots.find(first.substr(0, first.find('[')));
  if (root == roots.end()) return written;
  const json::Value* value = root->second;
  if (const auto bracket = first.find('['); bracket != std::string_view::npos)
    value = step(*value, first.substr(bracket));
  for (std::size_t i = 1; value != nullptr && i < parts.size(); ++i) value = step(*value, parts[i]);
  if (value == nullptr || value->is_null()) return written;
  return value->is_string() ? json::text(*value) : json::dump(*value);
}

}  // namespace

std::string render(std::string_view text, const Roots& roots, std::size_t most) {
  std::string out;
  for (;;) {
    if (out.size() > most) return out;
    const std::size_t open = text.find("<%");
    const std::size_t close = open == std::string_view::npos ? open : text.find("%>", open + 2);
    if (close == std::string_view::npos) return out.append(text);
    out.append(text.substr(0, open));
    out += look_up(text.substr(open + 2, close - open - 2), roots);
    text = text.substr(close + 2);
  }
}

}  // namespace muster::pai
