/// YAML as a tree that keeps what a JSON value drops: the line of every node and a scalar's text as
/// written. For configuration files whose errors must name the line, and whose text fields may look
/// like numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "json/json.h"

namespace muster::json {

struct YamlMember;

struct YamlNode {
  enum class Kind : std::uint8_t { kNull, kScalar, kSequence, kMapping };
  Kind kind = Kind::kNull;
  int line = 0;
  std::string text;    // of a scalar, as written
  bool plain = false;  // a scalar without quotes
  std::vector<YamlNode> items;
  std::vector<YamlMember> members;  // a key given twice: the last one counts
  std::vector<std::string> repeated_keys;

  bool is_null() const { return kind == Kind::kNull; }
  /// nullptr if absent or not a mapping.
  const YamlNode* find(std::string_view key) const;
  /// "a mapping", "a list", "\"text\"": for messages.
  std::string describe() const;
  std::optional<std::int64_t> as_int() const;
  std::optional<bool> as_bool() const;
  /// As parse_yaml would give it.
  Value to_value() const;

  YamlNode();
  YamlNode(const YamlNode&);
  YamlNode(YamlNode&&) noexcept;
  YamlNode& operator=(const YamlNode&);
  YamlNode& operator=(YamlNode&&) noexcept;
  ~YamlNode();
};

struct YamlMember {
  std::string first;
  YamlNode second;
};

/// One document; an empty text is a null node. Errors begin with "line N: ".
Result<YamlNode> parse_yaml_tree(std::string_view text);

}  // namespace muster::json
