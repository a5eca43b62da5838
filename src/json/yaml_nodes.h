/// The nodes of one YAML document, read in time and memory that grow with the text alone.
///
/// libyaml's own documents do not have that property: each anchor is compared with all before it,
/// each open bracket is looked at again for every token behind it, and an alias repeats whatever it
/// names. So its events are read one by one, names of anchors are looked up in a table, nesting is
/// refused when it begins, and what aliases repeat is counted before it is repeated.
///
/// Nodes lie in one vector in the order of the text. The children of a list or mapping (key, value,
/// key, value …) are a chain: `first`, then the `next` of each. Index 0 is the root; 0 as a link
/// means "none", because the root is nobody's child.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::json {

/// Lists and mappings inside each other, whoever writes them.
inline constexpr std::size_t kYamlDepthMax = 200;
/// The same for those in brackets: every token behind an open bracket costs libyaml a look at it.
inline constexpr std::size_t kYamlFlowDepthMax = 100;
/// What all aliases of a text may repeat together.
inline constexpr std::size_t kYamlAliasNodesMax = 10'000;
inline constexpr std::size_t kYamlAliasBytesMax = std::size_t{1} << 20;

struct YamlRaw {
  enum class Kind : std::uint8_t { kScalar, kSequence, kMapping };
  Kind kind = Kind::kScalar;
  /// A scalar without quotes.
  bool plain = false;
  std::uint32_t line = 0, column = 0;
  /// Where a scalar's text lies in YamlDocument::text.
  std::uint32_t text_at = 0, text_size = 0;
  std::uint32_t first = 0, next = 0;
  /// Set for an alias: the node it repeats, plus one. Everything else but `next` is then unset.
  std::uint32_t repeats = 0;
};

struct YamlDocument {
  std::vector<YamlRaw> nodes;  // empty: there is no further document
  std::string text;

  /// The node itself, or the one it repeats.
  [[nodiscard]] const YamlRaw& at(std::uint32_t index) const {
    const YamlRaw& node = nodes[index];
    return node.repeats == 0 ? node : nodes[node.repeats - 1];
  }
  [[nodiscard]] std::string_view text_of(const YamlRaw& node) const {
    return std::string_view(text).substr(node.text_at, node.text_size);
  }
};

/// What cannot be read, and where.
struct YamlProblem {
  std::size_t line = 0, column = 0;
  std::string what;
  bool too_large = false;
};

class YamlEvents {
 public:
  /// `input` must outlive this. More than `nodes_max` nodes in all documents together are too many.
  explicit YamlEvents(std::string_view input, std::size_t nodes_max = SIZE_MAX);
  ~YamlEvents();
  YamlEvents(const YamlEvents&) = delete;
  YamlEvents& operator=(const YamlEvents&) = delete;

  /// The next document; one without nodes at the end of the text. After false nothing more can be
  /// read.
  [[nodiscard]] bool next(YamlDocument* document, YamlProblem* problem);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::json
