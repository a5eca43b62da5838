#include "json/yaml_nodes.h"

#include <fmt/core.h>
#include <yaml.h>

#include <unordered_map>

namespace muster::json {
namespace {

/// Kubernetes' files have none; each costs a look at all others, and at every tag.
constexpr std::size_t kTagDirectivesMax = 16;

std::size_t tag_directives(std::string_view input) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < input.size();) {
    if (input.substr(at).starts_with("%TAG")) ++count;
    const auto end = input.find_first_of("\r\n", at);
    if (end == std::string_view::npos) break;
    at = end + 1;
  }
  return count;
}

/// An event of libyaml that is freed when the scope ends.
struct Event {
  yaml_event_t raw{};
  ~Event() { yaml_event_delete(&raw); }
};

std::string_view text_of(const yaml_char_t* text) {
  return text == nullptr ? std::string_view() : reinterpret_cast<const char*>(text);
}

}  // namespace

struct YamlEvents::Impl {
  /// What a node is with all below it.
  struct Size {
    std::size_t nodes = 0, bytes = 0;
  };
  struct Open {
    std::uint32_t index = 0;
    std::uint32_t last_child = 0;
    bool flow = false;
    Size before;  // of the whole document when this one began
  };

  Impl(std::string_view given, std::size_t most) : input(given), nodes_max(most) {
    yaml_parser_initialize(&parser);
    yaml_parser_set_input_string(
        &parser, reinterpret_cast<const unsigned char*>(input.data()), input.size());
  }
  ~Impl() { yaml_parser_delete(&parser); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  bool refuse(const yaml_event_t& event, std::string what) {
    problem = {event.start_mark.line + 1, event.start_mark.column + 1, std::move(what)};
    return false;
  }

  /// Hangs a new node below the innermost open one.
  std::uint32_t append(const yaml_event_t& event, YamlRaw node) {
    const auto index = static_cast<std::uint32_t>(document.nodes.size());
    node.line = static_cast<std::uint32_t>(event.start_mark.line + 1);
    node.column = static_cast<std::uint32_t>(event.start_mark.column + 1);
    document.nodes.push_back(node);
    ++size.nodes;
    if (open.empty()) return index;
    Open& parent = open.back();
    if (parent.last_child == 0)
      document.nodes[parent.index].first = index;
    else
      document.nodes[parent.last_child].next = index;
    parent.last_child = index;
    return index;
  }

  bool scalar(const yaml_event_t& event) {
    const auto& given = event.data.scalar;
    YamlRaw node;
    node.plain = given.style == YAML_PLAIN_SCALAR_STYLE;
    node.text_at = static_cast<std::uint32_t>(document.text.size());
    node.text_size = static_cast<std::uint32_t>(given.length);
    document.text.append(reinterpret_cast<const char*>(given.value), given.length);
    size.bytes += given.length;
    const std::uint32_t index = append(event, node);
    if (given.anchor != nullptr) anchors[std::string(text_of(given.anchor))] = index;
    if (given.anchor != nullptr) sizes[index] = {1, given.length};
    return true;
  }

  bool begin(const yaml_event_t& event, YamlRaw::Kind kind, const yaml_char_t* anchor, bool flow) {
    const std::size_t outside = open.empty() || !open.back().flow ? 0 : flow_depth;
    if (open.size() >= kYamlDepthMax || (flow && outside >= kYamlFlowDepthMax))
      return refuse(event, "nested too deeply");
    flow_depth = flow ? outside + 1 : 0;
    YamlRaw node;
    node.kind = kind;
    const Size before = size;
    const std::uint32_t index = append(event, node);
    open.push_back({index, 0, flow, before});
    if (anchor != nullptr) {
      anchors[std::string(text_of(anchor))] = index;
      sizes[index] = {};  // known when it ends; an alias before that would contain itself
    }
    return true;
  }

  void end() {
    const Open done = open.back();
    open.pop_back();
    if (done.flow) --flow_depth;
    if (const auto found = sizes.find(done.index); found != sizes.end())
      found->second = {size.nodes - done.before.nodes, size.bytes - done.before.bytes};
  }

  /// What the alias stands for counts as if it were written here, so that aliases of aliases do.
  bool alias(const yaml_event_t& event) {
    const std::string name(text_of(event.data.alias.anchor));
    const auto found = anchors.find(name);
    if (found == anchors.end())
      return refuse(event, fmt::format("unknown anchor '{}' referenced", name));
    const Size repeated = sizes[found->second];
    if (repeated.nodes == 0)
      return refuse(event, fmt::format("anchor '{}' value contains itself", name));
    aliased.nodes += repeated.nodes;
    aliased.bytes += repeated.bytes;
    if (aliased.nodes > kYamlAliasNodesMax || aliased.bytes > kYamlAliasBytesMax) {
      return refuse(event,
                    fmt::format("aliases repeat too much: wanted at most {} nodes and {} bytes",
                                kYamlAliasNodesMax,
                                kYamlAliasBytesMax));
    }
    YamlRaw node;
    node.repeats = found->second + 1;
    append(event, node);
    size.nodes += repeated.nodes - 1;
    size.bytes += repeated.bytes;
    return true;
  }

  bool take(const yaml_event_t& event) {
    switch (event.type) {
      case YAML_SCALAR_EVENT:
        return scalar(event);
      case YAML_SEQUENCE_START_EVENT:
        return begin(event,
                     YamlRaw::Kind::kSequence,
                     event.data.sequence_start.anchor,
                     event.data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE);
      case YAML_MAPPING_START_EVENT:
        return begin(event,
                     YamlRaw::Kind::kMapping,
                     event.data.mapping_start.anchor,
                     event.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE);
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT:
        end();
        return true;
      case YAML_ALIAS_EVENT:
        return alias(event);
      default:
        return true;
    }
  }

  bool read() {
    if (!checked && tag_directives(input) > kTagDirectivesMax) {
      problem = {1, 1, fmt::format("wanted at most {} %TAG directives", kTagDirectivesMax)};
      return false;
    }
    checked = true;
    // An empty document counts as well: there can be millions of them.
    nodes_before += document.nodes.size() + 1;
    document = {};
    anchors.clear();
    sizes.clear();
    size = {};
    while (true) {
      Event event;
      if (yaml_parser_parse(&parser, &event.raw) == 0) {
        problem = {parser.problem_mark.line + 1,
                   parser.problem_mark.column + 1,
                   parser.problem != nullptr ? parser.problem : "cannot be read"};
        return false;
      }
      if (event.raw.type == YAML_DOCUMENT_END_EVENT || event.raw.type == YAML_STREAM_END_EVENT)
        return true;
      if (!take(event.raw)) return false;
      if (document.nodes.size() + nodes_before > nodes_max) {
        problem = {event.raw.start_mark.line + 1,
                   event.raw.start_mark.column + 1,
                   fmt::format("more than {} values", nodes_max),
                   true};
        return false;
      }
    }
  }

  std::string_view input;
  yaml_parser_t parser{};
  std::size_t nodes_max;
  std::size_t nodes_before = 0;  // of the documents that were given away
  bool checked = false;
  YamlDocument document;
  YamlProblem problem;
  std::vector<Open> open;
  std::size_t flow_depth = 0;
  std::unordered_map<std::string, std::uint32_t> anchors;
  /// Of the nodes that have an anchor; no nodes while it is still open.
  std::unordered_map<std::uint32_t, Size> sizes;
  Size size;     // of this document, with what its aliases repeat
  Size aliased;  // by all documents of the text
};

YamlEvents::YamlEvents(std::string_view input, std::size_t nodes_max)
    : impl_(std::make_unique<Impl>(input, nodes_max)) {}
YamlEvents::~YamlEvents() = default;

bool YamlEvents::next(YamlDocument* document, YamlProblem* problem) {
  if (!impl_->read()) {
    *problem = std::move(impl_->problem);
    return false;
  }
  *document = std::move(impl_->document);
  return true;
}

}  // namespace muster::json
