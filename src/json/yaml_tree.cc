#include "json/yaml_tree.h"

#include <fmt/core.h>

#include <unordered_map>

#include "base/strings.h"
#include "json/yaml_nodes.h"

namespace muster::json {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view input) : events_(input) {}

  Result<YamlNode> document() {
    YamlProblem problem;
    if (!events_.next(&document_, &problem)) return unreadable(problem);
    if (document_.nodes.empty()) return YamlNode{};
    auto out = convert(0, 0);
    if (!out) return out;
    YamlDocument more;
    if (!events_.next(&more, &problem)) return unreadable(problem);
    if (!more.nodes.empty())
      return fail(
          Code::kBadRequest,
          fmt::format("line {}: wanted one YAML document, found a second", more.nodes[0].line));
    return out;
  }

 private:
  static tl::unexpected<Error> unreadable(const YamlProblem& problem) {
    return fail(Code::kBadRequest,
                fmt::format("line {}: not YAML: {}", problem.line, problem.what));
  }
  static tl::unexpected<Error> bad(const YamlRaw& node, std::string_view what) {
    return fail(Code::kBadRequest, fmt::format("line {}: {}", node.line, what));
  }

  Result<YamlNode> convert(std::uint32_t index, std::size_t depth) {
    const YamlRaw& node = document_.at(index);
    if (depth > kYamlDepthMax) return bad(node, "nested too deeply");
    YamlNode out;
    out.line = static_cast<int>(node.line);
    if (node.kind == YamlRaw::Kind::kScalar) {
      out.text = std::string(document_.text_of(node));
      out.plain = node.plain;
      const bool null = out.plain && (out.text.empty() || out.text == "~" || out.text == "null" ||
                                      out.text == "Null" || out.text == "NULL");
      out.kind = null ? YamlNode::Kind::kNull : YamlNode::Kind::kScalar;
      return out;
    }
    if (node.kind == YamlRaw::Kind::kMapping) {
      out.kind = YamlNode::Kind::kMapping;
      return mapping(node, depth, std::move(out));
    }
    out.kind = YamlNode::Kind::kSequence;
    for (std::uint32_t item = node.first; item != 0; item = document_.nodes[item].next) {
      auto child = convert(item, depth + 1);
      if (!child) return child;
      out.items.push_back(std::move(*child));
    }
    return out;
  }

  Result<YamlNode> mapping(const YamlRaw& node, std::size_t depth, YamlNode out) {
    std::vector<YamlNode> merged;
    // Where each key stands in `members`.
    std::unordered_map<std::string, std::size_t> places;
    for (std::uint32_t at = node.first; at != 0;) {
      const YamlRaw& key_node = document_.at(at);
      const std::uint32_t value_at = document_.nodes[at].next;
      at = document_.nodes[value_at].next;
      if (key_node.kind != YamlRaw::Kind::kScalar)
        return bad(key_node, "a key must be a plain value");
      std::string key(document_.text_of(key_node));
      auto value = convert(value_at, depth + 1);
      if (!value) return value;
      if (key == "<<" && key_node.plain) {
        if (value->kind == YamlNode::Kind::kSequence)
          merged.insert(merged.end(), value->items.begin(), value->items.end());
        else
          merged.push_back(std::move(*value));
        continue;
      }
      if (value->line == 0 || value->is_null()) value->line = static_cast<int>(key_node.line);
      const auto [place, fresh] = places.emplace(key, out.members.size());
      if (fresh) {
        out.members.push_back({std::move(key), std::move(*value)});
      } else {
        out.repeated_keys.push_back(key);
        out.members[place->second].second = std::move(*value);
      }
    }
    for (YamlNode& base : merged) {
      if (base.kind != YamlNode::Kind::kMapping)
        return bad(node, "\"<<\": wanted a mapping or a list of mappings");
      for (auto& member : base.members) {
        if (places.emplace(member.first, out.members.size()).second)
          out.members.push_back(std::move(member));
      }
    }
    return out;
  }

  YamlEvents events_;
  YamlDocument document_;
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
