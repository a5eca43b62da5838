#include <fmt/core.h>
#include <yaml.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/strings.h"
#include "json/json.h"

namespace muster::json {
namespace {

constexpr int kMaxDepth = 200;
/// Aliases may repeat a node; a small file must not grow into gigabytes.
constexpr std::size_t kMaxAliasNodes = 1'000'000;

class Parser {
 public:
  explicit Parser(std::string_view input) {
    yaml_parser_initialize(&parser_);
    yaml_parser_set_input_string(
        &parser_, reinterpret_cast<const unsigned char*>(input.data()), input.size());
  }
  ~Parser() { yaml_parser_delete(&parser_); }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  Result<std::vector<Value>> documents() {
    std::vector<Value> out;
    while (true) {
      yaml_document_t document;
      if (yaml_parser_load(&parser_, &document) == 0) {
        return fail(Code::kBadRequest,
                    fmt::format("yaml: line {}: {}",
                                parser_.problem_mark.line + 1,
                                parser_.problem != nullptr ? parser_.problem : "cannot be read"));
      }
      yaml_node_t* root = yaml_document_get_root_node(&document);
      if (root == nullptr) {
        yaml_document_delete(&document);
        return out;
      }
      auto value = convert(document, root, 0);
      yaml_document_delete(&document);
      if (!value) return fail(value.error());
      if (!value->is_null()) out.push_back(std::move(*value));
    }
  }

 private:
  static tl::unexpected<Error> bad(const yaml_node_t* node, std::string_view what) {
    return fail(Code::kBadRequest,
                fmt::format("yaml: line {}: {}", node->start_mark.line + 1, what));
  }

  Result<Value> convert(yaml_document_t& document, yaml_node_t* node, int depth) {
    if (depth > kMaxDepth) return bad(node, "nested too deeply");
    if (++nodes_ > kMaxAliasNodes) return bad(node, "too many nodes (aliases repeated too often)");
    switch (node->type) {
      case YAML_SCALAR_NODE:
        return scalar(node);
      case YAML_SEQUENCE_NODE: {
        Array array;
        for (auto* item = node->data.sequence.items.start; item < node->data.sequence.items.top;
             ++item) {
          auto value = convert(document, yaml_document_get_node(&document, *item), depth + 1);
          if (!value) return value;
          array.push_back(std::move(*value));
        }
        return Value(std::move(array));
      }
      case YAML_MAPPING_NODE:
        return mapping(document, node, depth);
      default:
        return Value(nullptr);
    }
  }

  Result<Value> mapping(yaml_document_t& document, yaml_node_t* node, int depth) {
    Object object;
    std::vector<Value> merged;
    for (auto* pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; ++pair) {
      yaml_node_t* key_node = yaml_document_get_node(&document, pair->key);
      if (key_node->type != YAML_SCALAR_NODE) return bad(key_node, "a key must be a plain value");
      const std::string key(reinterpret_cast<const char*>(key_node->data.scalar.value),
                            key_node->data.scalar.length);
      auto value = convert(document, yaml_document_get_node(&document, pair->value), depth + 1);
      if (!value) return value;
      if (key == "<<" && key_node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        if (value->is_array()) {
          for (const Value& one : value->get_array()) merged.push_back(one);
        } else {
          merged.push_back(std::move(*value));
        }
        continue;
      }
      if (object.contains(key))
        return bad(key_node, fmt::format("key \"{}\" already set in map", key));
      object[key] = std::move(*value);
    }
    for (const Value& base : merged) {
      if (!base.is_object())
        return bad(node, "map merge requires map or sequence of maps as the value");
      for (const auto& member : base.get_object()) {
        if (!object.contains(member.key())) object[member.key()] = member.value();
      }
    }
    return Value(std::move(object));
  }

  static Result<Value> scalar(const yaml_node_t* node) {
    const std::string_view text(reinterpret_cast<const char*>(node->data.scalar.value),
                                node->data.scalar.length);
    const std::string_view tag =
        node->tag != nullptr ? reinterpret_cast<const char*>(node->tag) : "";
    const bool plain = node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (!plain || (tag == YAML_STR_TAG && node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE))
      return Value(text);
    return plain_scalar(text);
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

  yaml_parser_t parser_{};
  std::size_t nodes_ = 0;
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

Result<std::vector<Value>> parse_yaml(std::string_view text) { return Parser(text).documents(); }

Result<Value> parse_yaml_one(std::string_view text) {
  auto documents = parse_yaml(text);
  if (!documents) return fail(documents.error());
  if (documents->size() > 1)
    return fail(Code::kBadRequest, "yaml: want one document, found several");
  return documents->empty() ? Value(nullptr) : std::move((*documents)[0]);
}

std::string to_yaml(const Value& value) {
  std::string out;
  emit(out, value, 0, false);
  if (out.empty() || out.back() != '\n') out += '\n';
  return out;
}

}  // namespace muster::json
