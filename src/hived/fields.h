/// Reads members of a YAML mapping and keeps the first problem, in the words of HiveD's errors.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "json/yaml_tree.h"

namespace muster::hived {

class Fields {
 public:
  explicit Fields(std::string_view annotation) : annotation_(annotation) {}

  void text(const json::YamlNode& owner, std::string_view key, std::string& out) {
    const json::YamlNode* node = owner.find(key);
    if (node == nullptr || node->is_null()) return;
    if (node->kind != json::YamlNode::Kind::kScalar) return wrong(*node, key, "a text");
    out = node->text;
  }
  void number(const json::YamlNode& owner, std::string_view key, std::int32_t& out) {
    const json::YamlNode* node = owner.find(key);
    if (node == nullptr || node->is_null()) return;
    value(*node, key, out);
  }
  void value(const json::YamlNode& node, std::string_view key, std::int32_t& out) {
    const auto read = node.as_int();
    if (!read || *read < std::numeric_limits<std::int32_t>::min() ||
        *read > std::numeric_limits<std::int32_t>::max())
      return wrong(node, key, "a whole number");
    out = static_cast<std::int32_t>(*read);
  }
  void boolean(const json::YamlNode& owner, std::string_view key, bool& out) {
    const json::YamlNode* node = owner.find(key);
    if (node == nullptr || node->is_null()) return;
    const auto read = node->as_bool();
    if (!read) return wrong(*node, key, "true or false");
    out = *read;
  }
  const json::YamlNode* list(const json::YamlNode& owner, std::string_view key) {
    const json::YamlNode* node = owner.find(key);
    if (node == nullptr || node->is_null()) return nullptr;
    if (node->kind == json::YamlNode::Kind::kSequence) return node;
    wrong(*node, key, "a list");
    return nullptr;
  }
  /// The mapping below `key`; null when there is none.
  const json::YamlNode* mapping(const json::YamlNode& owner,
                                std::string_view key,
                                std::string_view want) {
    const json::YamlNode* node = owner.find(key);
    if (node == nullptr || node->is_null()) return nullptr;
    if (node->kind == json::YamlNode::Kind::kMapping) return node;
    wrong(*node, key, want);
    return nullptr;
  }
  void wrong(const json::YamlNode& node, std::string_view key, std::string_view want) {
    if (problem.empty())
      problem = fmt::format("Pod annotation {}: line {}: {}: wanted {}, found {}",
                            annotation_,
                            node.line,
                            key,
                            want,
                            node.describe());
  }
  std::string problem;

 private:
  std::string_view annotation_;
};

}  // namespace muster::hived
