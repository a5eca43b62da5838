#include "json/yaml_tree.h"

#include <fmt/core.h>
#include <yaml.h>

#include <algorithm>

#include "base/strings.h"

namespace muster::json {
namespace {

constexpr int kMaxDepth = 200;
constexpr std::size_t kMaxNodes = 2'000'000;  // aliases may repeat a node

class Reader {
 public:
  explicit Reader(std::string_view input) {
    yaml_parser_initialize(&parser_);
    yaml_parser_set_input_string(
        &parser_, reinterpret_cast<const unsigned char*>(input.data()), input.size());
  }
  ~Reader() { yaml_parser_delete(&parser_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  Result<YamlNode> document() {
    yaml_document_t document;
    if (yaml_parser_load(&parser_, &document) == 0) return problem();
    yaml_node_t* root = yaml_document_get_root_node(&document);
    Result<YamlNode> out =
        root == nullptr ? Result<YamlNode>(YamlNode{}) : convert(document, root, 0);
    yaml_document_delete(&document);
    if (!out || root == nullptr) return out;
    if (yaml_parser_load(&parser_, &document) == 0) return problem();
    yaml_node_t* more = yaml_document_get_root_node(&document);
    const std::size_t line = more == nullptr ? 0 : more->start_mark.line + 1;
    yaml_document_delete(&document);
    if (more != nullptr)
      return fail(Code::kBadRequest,
                  fmt::format("line {}: want one YAML document, found a second", line));
    return out;
  }

 private:
  tl::unexpected<Error> problem() const {
    return fail(Code::kBadRequest,
                fmt::format("line {}: not YAML: {}",
                            parser_.problem_mark.line + 1,
                            parser_.problem != nullptr ? parser_.problem : "cannot be read"));
  }
  static tl::unexpected<Error> bad(const yaml_node_t* node, std::string_view what) {
    return fail(Code::kBadRequest, fmt::format("line {}: {}", node->start_mark.line + 1, what));
  }
  static std::string text_of(const yaml_node_t* node) {
    return std::string(reinterpret_cast<const char*>(node->data.scalar.value),
                       node->data.scalar.length);
  }

  Result<YamlNode> convert(yaml_document_t& document, yaml_node_t* node, int depth) {
    if (depth > kMaxDepth) return bad(node, "nested too deeply");
    if (++nodes_ > kMaxNodes) return bad(node, "too many nodes (aliases repeated too often)");
    YamlNode out;
    out.line = static_cast<int>(node->start_mark.line) + 1;
    if (node->type == YAML_SCALAR_NODE) {
      out.text = text_of(node);
      out.plain = node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
      const bool null = out.plain && (out.text.empty() || out.text == "~" || out.text == "null" ||
                                      out.text == "Null" || out.text == "NULL");
      out.kind = null ? YamlNode::Kind::kNull : YamlNode::Kind::kScalar;
    } else if (node->type == YAML_SEQUENCE_NODE) {
      out.kind = YamlNode::Kind::kSequence;
      for (auto* item = node->data.sequence.items.start; item < node->data.sequence.items.top;
           ++item) {
        auto child = convert(document, yaml_document_get_node(&document, *item), depth + 1);
        if (!child) return child;
        out.items.push_back(std::move(*child));
      }
    } else if (node->type == YAML_MAPPING_NODE) {
      out.kind = YamlNode::Kind::kMapping;
      return mapping(document, node, depth, std::move(out));
    }
    return out;
  }

  Result<YamlNode> mapping(yaml_document_t& document, yaml_node_t* node, int depth, YamlNode out) {
    std::vector<YamlNode> merged;
    for (auto* pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top; ++pair) {
      yaml_node_t* key_node = yaml_document_get_node(&document, pair->key);
      if (key_node->type != YAML_SCALAR_NODE) return bad(key_node, "a key must be a plain value");
      std::string key = text_of(key_node);
      auto value = convert(document, yaml_document_get_node(&document, pair->value), depth + 1);
      if (!value) return value;
      if (key == "<<" && key_node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE) {
        if (value->kind == YamlNode::Kind::kSequence)
          merged.insert(merged.end(), value->items.begin(), value->items.end());
        else
          merged.push_back(std::move(*value));
        continue;
      }
      if (value->line == 0 || value->is_null())
        value->line = static_cast<int>(key_node->start_mark.line) + 1;
      const auto old = std::find_if(
          out.members.begin(), out.members.end(), [&](const auto& m) { return m.first == key; });
      if (old != out.members.end()) {
        out.repeated_keys.push_back(key);
        old->second = std::move(*value);
      } else {
        out.members.push_back({std::move(key), std::move(*value)});
      }
    }
    for (YamlNode& base : merged) {
      if (base.kind != YamlNode::Kind::kMapping)
        return bad(node, "\"<<\" wants a mapping or a list of mappings");
      for (auto& member : base.members) {
        if (out.find(member.first) == nullptr) out.members.push_back(std::move(member));
      }
    }
    return out;
  }

  yaml_parser_t parser_{};
  std::size_t nodes_ = 0;
};

}  // namespace

YamlNode::YamlNode() = default;
YamlNode::YamlNode(const YamlNode&) = default;
YamlNode::YamlNode(YamlNode&&) noexcept = default;
YamlNode& YamlNode::operator=(const YamlNode&) = default;
YamlNode& YamlNode::operator=(YamlNode&&) noexcept = default;
YamlNode::~YamlNode() = default;

const YamlNode* YamlNode::find(std::string_view key) const {
  for (const auto& member : members) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

std::string YamlNode::describe() const {
  switch (kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kSequence:
      return "a list";
    case Kind::kMapping:
      return "a mapping";
    case Kind::kScalar:
      break;
  }
  return "\"" + text + "\"";
}

Value YamlNode::to_value() const {
  switch (kind) {
    case Kind::kNull:
      return Value(nullptr);
    case Kind::kScalar: {
      if (!plain) return Value(text);
      auto read = parse_yaml(text);
      return read && read->size() == 1 ? (*read)[0] : Value(text);
    }
    case Kind::kSequence: {
      Array out;
      for (const YamlNode& item : items) out.push_back(item.to_value());
      return Value(std::move(out));
    }
    case Kind::kMapping: {
      Object out;
      for (const auto& member : members) out[member.first] = member.second.to_value();
      return Value(std::move(out));
    }
  }
  return Value(nullptr);
}

std::optional<std::int64_t> YamlNode::as_int() const {
  if (kind != Kind::kScalar || !plain) return std::nullopt;
  if (text.size() < 10 && text.find_first_not_of("0123456789") == std::string::npos &&
      (text[0] != '0' || text.size() == 1))
    return parse_int(text);
  const Value value = to_value();
  if (value.is_int64()) return value.get_int64();
  if (value.is_double() &&
      value.get_double() == static_cast<double>(static_cast<std::int64_t>(value.get_double())))
    return static_cast<std::int64_t>(value.get_double());
  return std::nullopt;
}

std::optional<bool> YamlNode::as_bool() const {
  if (kind != Kind::kScalar || !plain) return std::nullopt;
  if (text == "true" || text == "false") return text == "true";
  const Value value = to_value();
  if (value.is_bool()) return value.get_bool();
  return std::nullopt;
}

Result<YamlNode> parse_yaml_tree(std::string_view text) { return Reader(text).document(); }

}  // namespace muster::json
