#include "portal/api/locate.h"

#include <algorithm>

#include "base/strings.h"
#include "json/yaml_tree.h"

namespace muster::portal {
namespace {

using json::YamlNode;

/// Texts of lines, from 1.
class Lines {
 public:
  explicit Lines(std::string_view text) : lines_(split(std::string(text), '\n')) {}
  [[nodiscard]] std::string_view at(int line) const {
    return line < 1 || static_cast<std::size_t>(line) > lines_.size()
               ? std::string_view()
               : std::string_view(lines_[static_cast<std::size_t>(line) - 1]);
  }
  [[nodiscard]] int count() const { return static_cast<int>(lines_.size()); }

 private:
  std::vector<std::string> lines_;
};

/// The column of `key:` in a line; 0: it is not there.
int column_of_key(std::string_view line, std::string_view key) {
  for (std::size_t at = line.find(key); at != std::string_view::npos; at = line.find(key, at + 1)) {
    std::size_t end = at + key.size();
    const bool begins =
        at == 0 || std::string_view(" \t-{,'\"").find(line[at - 1]) != std::string_view::npos;
    if (end < line.size() && (line[end] == '"' || line[end] == '\'')) ++end;
    while (end < line.size() && line[end] == ' ') ++end;
    if (begins && end < line.size() && line[end] == ':') return static_cast<int>(at) + 1;
  }
  return 0;
}

int first_column(std::string_view line) {
  const std::size_t at = line.find_first_not_of(" \t");
  return at == std::string_view::npos ? 1 : static_cast<int>(at) + 1;
}

/// A key stands on the line of its value, or on one before it.
Spot spot_of_key(const Lines& lines, int from, int to, std::string_view key) {
  for (int line = std::max(1, to); line >= std::max(1, from); --line) {
    if (const int column = column_of_key(lines.at(line), key); column != 0) return {line, column};
  }
  return {to, first_column(lines.at(to))};
}

}  // namespace

std::vector<std::string> path_parts(std::string_view path) {
  std::vector<std::string> parts;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) parts.push_back(std::move(word));
    word.clear();
  };
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '.') {
      end_word();
    } else if (path[i] == '[') {
      end_word();
      const std::size_t close = path.find(']', i);
      if (close == std::string_view::npos) break;
      std::string_view inner = path.substr(i + 1, close - i - 1);
      if (inner.size() >= 2 && (inner.front() == '\'' || inner.front() == '"'))
        inner = inner.substr(1, inner.size() - 2);
      parts.emplace_back(inner);
      i = close;
    } else {
      word += path[i];
    }
  }
  end_word();
  return parts;
}

Spot locate(std::string_view yaml, const std::vector<std::string>& parts) {
  const auto tree = json::parse_yaml_tree(yaml);
  if (!tree) return spot_of_message(tree.error().message);
  const Lines lines(yaml);
  const YamlNode* node = &*tree;
  Spot spot{1, 1};
  for (const std::string& part : parts) {
    if (const auto index = parse_int(part); index && node->kind == YamlNode::Kind::kSequence) {
      if (*index < 0 || static_cast<std::size_t>(*index) >= node->items.size()) break;
      node = &node->items[static_cast<std::size_t>(*index)];
      spot = {node->line, first_column(lines.at(node->line))};
      continue;
    }
    const YamlNode* child = node->find(part);
    if (child == nullptr) break;
    // A value that is empty has no line of its own.
    const int to = child->line > 0 ? child->line : lines.count();
    spot = spot_of_key(lines, spot.line, to, part);
    node = child;
  }
  return spot;
}

std::vector<std::string> validation_errors(std::string_view said) {
  constexpr std::string_view kBegin = "Found validation errors: ";
  const std::size_t begin = said.find(kBegin);
  if (begin == std::string_view::npos) return {};
  said.remove_prefix(begin + kBegin.size());
  if (said.starts_with('[') && said.ends_with(']')) said = said.substr(1, said.size() - 2);
  // A detail may have commas of its own; what begins with a path is the next error.
  const auto next_error = [&] {
    for (std::size_t at = said.find(", "); at != std::string_view::npos;
         at = said.find(", ", at + 1)) {
      const std::string_view rest = said.substr(at + 2);
      if (rest.starts_with("spec.") || rest.starts_with("metadata.")) return at;
    }
    return said.size();
  };
  std::vector<std::string> errors;
  while (!said.empty()) {
    const std::size_t end = next_error();
    errors.emplace_back(said.substr(0, end));
    said.remove_prefix(std::min(said.size(), end + 2));
  }
  return errors;
}

Spot spot_of_message(std::string_view message) {
  Spot spot;
  const auto number_after = [&](std::string_view word) -> int {
    const std::size_t at = message.find(word);
    if (at == std::string_view::npos) return 0;
    std::string_view rest = message.substr(at + word.size());
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789"), rest.size());
    const auto number = parse_int(rest.substr(0, std::min<std::size_t>(digits, 8)));
    return number ? static_cast<int>(*number) : 0;
  };
  spot.line = number_after("line ");
  spot.col = spot.line == 0 ? 0 : std::max(1, number_after("column "));
  return spot;
}

}  // namespace muster::portal
