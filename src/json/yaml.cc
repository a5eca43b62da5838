#include "json/yaml.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/strings.h"
#include "json/json.h"
#include "json/yaml_nodes.h"

namespace muster::json {
namespace {

class Parser {
 public:
  Parser(std::string_view input, std::size_t values_max) : events_(input, values_max) {}

  Result<std::vector<Value>> documents() {
    std::vector<Value> out;
    while (true) {
      YamlProblem problem;
      if (!events_.next(&document_, &problem))
        return fail(problem.too_large ? Code::kTooLarge : Code::kBadRequest,
                    place(problem.line, problem.column, problem.what));
      if (document_.nodes.empty()) return out;
      auto value = convert(0, 0);
      if (!value) return fail(value.error());
      if (!value->is_null()) out.push_back(std::move(*value));
    }
  }

 private:
  static std::string place(std::size_t line, std::size_t column, std::string_view what) {
    return fmt::format("yaml: line {}, column {}: {}", line, column, what);
  }
  static tl::unexpected<Error> bad(const YamlRaw& node, std::string_view what) {
    return fail(Code::kBadRequest, place(node.line, node.column, what));
  }

  Result<Value> convert(std::uint32_t index, std::size_t depth) {
    const YamlRaw& node = document_.at(index);
    // Aliases can put together what is deeper than anything written.
    if (depth > kYamlDepthMax) return bad(node, "nested too deeply");
    if (node.kind == YamlRaw::Kind::kScalar) return scalar(node);
    if (node.kind == YamlRaw::Kind::kMapping) return mapping(node, depth);
    Array array;
    for (std::uint32_t item = node.first; item != 0; item = document_.nodes[item].next) {
      auto value = convert(item, depth + 1);
      if (!value) return value;
      array.push_back(std::move(*value));
    }
    return Value(std::move(array));
  }

  Result<Value> mapping(const YamlRaw& node, std::size_t depth) {
    Object object;
    std::vector<Value> merged;
    for (std::uint32_t at = node.first; at != 0;) {
      const YamlRaw& key_node = document_.at(at);
      const std::uint32_t value_at = document_.nodes[at].next;
      at = document_.nodes[value_at].next;
      if (key_node.kind != YamlRaw::Kind::kScalar)
        return bad(key_node, "a key must be a plain value");
      const std::string_view key = document_.text_of(key_node);
      auto value = convert(value_at, depth + 1);
      if (!value) return value;
      if (key == "<<" && key_node.plain) {
        if (value->is_array()) {
          for (const Value& one : value->get_array()) merged.push_back(one);
        } else {
          merged.push_back(std::move(*value));
        }
        continue;
      }
      const auto [place, fresh] = object.emplace(key, std::move(*value));
      if (!fresh) return bad(key_node, fmt::format("key \"{}\" already set in map", key));
    }
    for (const Value& base : merged) {
      if (!base.is_object())
        return bad(node, "map merge requires map or sequence of maps as the value");
      for (const auto& member : base.get_object()) object.emplace(member.key(), member.value());
    }
    return Value(std::move(object));
  }

  Value scalar(const YamlRaw& node) const {
    const std::string_view text = document_.text_of(node);
    return node.plain ? plain_scalar(text) : Value(text);
  }

  static Value plain_scalar(std::string_view text) {
    static constexpr std::string_view kTrue[] = {
        "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"};
    static constexpr std::string_view kFalse[] = {
        "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"};
    if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL")
      return Value(nullptr);
    if (std::find(std::begin(kTrue), std::end(kTrue), text) != std::end(kTrue)) return Value(true);
    if (std::find(std::begin(kFalse), std::end(kFalse), text) != std::end(kFalse))
      return Value(false);
    if (auto number = parse_number(text)) return *number;
    return Value(text);
  }

  static std::optional<Value> parse_number(std::string_view text) {
    std::string clean;
    for (const char c : text) {
      if (c != '_') clean += c;
    }
    std::string_view digits = clean;
    const bool negative = !digits.empty() && digits[0] == '-';
    if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) digits.remove_prefix(1);
    if (digits.empty() || !((digits[0] >= '0' && digits[0] <= '9') || digits[0] == '.'))
      return std::nullopt;
    int base = 10;
    if (digits.starts_with("0x"))
      base = 16, digits.remove_prefix(2);
    else if (digits.starts_with("0b"))
      base = 2, digits.remove_prefix(2);
    else if (digits.starts_with("0o"))
      base = 8, digits.remove_prefix(2);
    else if (digits.size() > 1 && digits[0] == '0' &&
             digits.find_first_not_of("01234567") == std::string_view::npos)
      base = 8;
    const bool integral = !digits.empty() && std::all_of(digits.begin(), digits.end(), [&](char c) {
      return base == 16 ? std::isxdigit(static_cast<unsigned char>(c)) != 0
                        : c >= '0' && c < '0' + std::min(base, 10);
    });
    if (integral) {
      errno = 0;
      char* end = nullptr;
      const std::string copy(digits);
      const unsigned long long value = std::strtoull(copy.c_str(), &end, base);
      if (errno == 0 && *end == '\0') {
        if (negative && value <= 1ULL << 63) return Value(static_cast<std::int64_t>(0 - value));
        if (!negative && value <= static_cast<unsigned long long>(INT64_MAX))
          return Value(static_cast<std::int64_t>(value));
        if (!negative) return Value(static_cast<std::uint64_t>(value));
      }
    }
    if (base != 10 || digits.find_first_not_of("0123456789.eE+-") != std::string_view::npos)
      return std::nullopt;
    char* end = nullptr;
    const double value = std::strtod(clean.c_str(), &end);
    if (end == clean.c_str() || *end != '\0' || !std::isfinite(value)) return std::nullopt;
    return Value(value);
  }

  YamlEvents events_;
  YamlDocument document_;
};

bool plain_is_safe(std::string_view text) {
  if (text.empty() || text.front() == ' ' || text.back() == ' ') return false;
  if (text.find_first_of("\n\t\"'#:{}[],&*!|>%@`") != std::string_view::npos) {
    // ':' and '#' matter only next to a space or at an end; a colon inside a word is plain.
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '\n' || c == '\t') return false;
      if (c == ':' && (i + 1 == text.size() || text[i + 1] == ' ')) return false;
      if (c == '#' && i > 0 && text[i - 1] == ' ') return false;
      if (std::string_view("{}[],").find(c) != std::string_view::npos && i == 0) return false;
    }
    if (std::string_view("\"'#&*!|>%@`").find(text.front()) != std::string_view::npos) return false;
  }
  if (text.front() == '-' && (text.size() == 1 || text[1] == ' ' || text == "---")) return false;
  if (text.front() == '?' && (text.size() == 1 || text[1] == ' ')) return false;
  if (text == "=" || text == "<<") return false;
  return true;
}

void emit(std::string& out, const Value& value, int indent, bool after_dash);

void emit_string(std::string& out, std::string_view text, int indent) {
  if (text.find('\n') != std::string_view::npos && text.front() != ' ' && text.front() != '\n' &&
      text.find('\t') == std::string_view::npos) {
    // A literal block; the chomping mark keeps the text's own trailing newlines.
    const bool ends = text.back() == '\n';
    const bool ends_twice = text.size() > 1 && ends && text[text.size() - 2] == '\n';
    out += ends_twice ? "|+" : ends ? "|" : "|-";
    std::vector<std::string> lines = split(ends ? text.substr(0, text.size() - 1) : text, '\n');
    for (const std::string& line : lines) {
      out += '\n';
      if (!line.empty()) out.append(static_cast<std::size_t>(indent), ' ').append(line);
    }
    return;
  }
  Result<std::vector<Value>> read =
      plain_is_safe(text) ? parse_yaml(text) : Result<std::vector<Value>>(std::vector<Value>{});
  if (read && read->size() == 1 && (*read)[0].is_string() && (*read)[0].get_string() == text) {
    out += text;
  } else if (text.find_first_of("\n\t\\\x7f") == std::string_view::npos) {
    // Single quotes only where double quotes would need escapes, as go-yaml prefers double quotes.
    out += text.find('"') == std::string_view::npos ? "\"" + std::string(text) + "\""
                                                    : "'" + replace_all(text, "'", "''") + "'";
  } else {
    out += dump(Value(text));
  }
}

void emit(std::string& out, const Value& value, int indent, bool after_dash) {
  const auto pad = [&] { out.append(static_cast<std::size_t>(indent), ' '); };
  if (const Object* object = value.if_object(); object != nullptr && !object->empty()) {
    std::vector<std::string_view> keys;
    for (const auto& member : *object) keys.push_back(member.key());
    std::sort(keys.begin(), keys.end());
    bool first = true;
    for (const std::string_view key : keys) {
      if (!first || !after_dash) {
        if (!out.empty() && out.back() != '\n') out += '\n';
        pad();
      }
      first = false;
      emit_string(out, key, indent);
      out += ':';
      const Value& member = object->at(key);
      const bool block = (member.is_object() && !member.get_object().empty()) ||
                         (member.is_array() && !member.get_array().empty());
      if (block) {
        out += '\n';
        emit(out, member, member.is_array() ? indent : indent + 2, false);
      } else {
        out += ' ';
        emit(out, member, indent + 2, false);
      }
      if (out.back() != '\n') out += '\n';
    }
  } else if (const Array* array = value.if_array(); array != nullptr && !array->empty()) {
    bool first = true;
    for (const Value& item : *array) {
      if (!first || !after_dash) pad();
      first = false;
      out += "- ";
      emit(out, item, indent + 2, true);
      if (out.back() != '\n') out += '\n';
    }
  } else if (value.is_string()) {
    emit_string(out, as_string(value), indent);
  } else {
    out += dump(value);
  }
}

}  // namespace

Result<std::vector<Value>> parse_yaml(std::string_view text) {
  return Parser(text, SIZE_MAX).documents();
}

Result<Value> parse_yaml_one(std::string_view text) { return parse_yaml_one(text, SIZE_MAX); }

Result<Value> parse_yaml_one(std::string_view text, std::size_t values_max) {
  auto documents = Parser(text, values_max).documents();
  if (!documents) return fail(documents.error());
  if (documents->size() > 1)
    return fail(Code::kBadRequest, "yaml: wanted one document, found several");
  return documents->empty() ? Value(nullptr) : std::move((*documents)[0]);
}

std::string to_yaml(const Value& value) {
  std::string out;
  emit(out, value, 0, false);
  if (out.empty() || out.back() != '\n') out += '\n';
  return out;
}

}  // namespace muster::json
