#include "hived/annotations.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "engine/cells/cells.h"
#include "hived/fields.h"
#include "hived/pod_groups.h"
#include "json/yaml_tree.h"

namespace muster::hived {
namespace {

using engine::cells::BindInfo;
using engine::cells::GroupMember;
using engine::cells::MemberPlacement;
using engine::cells::PodPlacement;
using engine::cells::PodSpec;
using json::YamlNode;

std::string modern_names(std::string_view yaml) {
  std::string text = replace_all(yaml, "gpuType", "leafCellType");
  text = replace_all(text, "gpuNumber", "leafCellNumber");
  text = replace_all(text, "gpuIsolation", "leafCellIsolation");
  return replace_all(text, "physicalGpuIndices", "physicalLeafCellIndices");
}

tl::unexpected<Error> bad_spec(std::string_view what) {
  return fail(Code::kBadRequest, fmt::format("Pod annotation {}: {}", kSchedulingSpec, what));
}

Result<void> check_tenant(const PodSpec& spec) {
  if (spec.vc.empty()) return bad_spec("VirtualCluster is empty");
  if (spec.priority < engine::cells::kOpportunistic) return bad_spec("Priority is less than -1");
  if (spec.priority > engine::cells::kMaxPriority) return bad_spec("Priority is greater than 1000");
  return {};
}

Result<void> check_group(const PodSpec& spec) {
  if (spec.leaves <= 0) return bad_spec("LeafCellNumber is non-positive");
  if (spec.group.empty()) return bad_spec("AffinityGroup.Name is empty");
  bool contains = false;
  std::int64_t total = 0;
  for (const GroupMember& member : spec.members) {
    if (member.pods <= 0) return bad_spec("AffinityGroup.Members has non-positive PodNumber");
    if (member.leaves <= 0)
      return bad_spec("AffinityGroup.Members has non-positive LeafCellNumber");
    contains = contains || member.leaves == spec.leaves;
    total += std::int64_t{member.pods} * member.leaves;
  }
  if (!contains) return bad_spec("AffinityGroup.Members does not contains current Pod");
  if (total > 10'000'000)
    return bad_spec(
        fmt::format("AffinityGroup.Members asks for {} leaf cells; the most is 10000000", total));
  return {};
}

void read_affinity_group(const YamlNode& root,
                         const std::string& alone,
                         Fields& fields,
                         PodSpec& spec) {
  fields.text(root, "leafCellType", spec.leaf_type);
  fields.number(root, "leafCellNumber", spec.leaves);
  fields.boolean(root, "ignoreK8sSuggestedNodes", spec.ignore_suggested);
  const YamlNode* group = root.find("affinityGroup");
  if (group == nullptr || group->is_null()) {
    spec.group = alone;
    spec.members.push_back({1, spec.leaves});
    return;
  }
  if (group->kind != YamlNode::Kind::kMapping)
    return fields.wrong(*group, "affinityGroup", "a mapping with name and members");
  fields.text(*group, "name", spec.group);
  const YamlNode* members = fields.list(*group, "members");
  for (std::size_t i = 0; members != nullptr && i < members->items.size(); ++i) {
    const YamlNode& item = members->items[i];
    if (item.kind != YamlNode::Kind::kMapping) {
      fields.wrong(item, "members", "a mapping with podNumber and leafCellNumber");
      continue;
    }
    GroupMember member;
    fields.number(item, "podNumber", member.pods);
    fields.number(item, "leafCellNumber", member.leaves);
    spec.members.push_back(std::move(member));
  }
}

/// A scalar that reads back as the same text.
std::string scalar(std::string_view text) {
  // Most names are plain words with a capital, a digit or a dash in them; only short lower-case
  // words can mean something else.
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_/~";
  const bool letter =
      !text.empty() && ((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z'));
  if (letter && text.size() > 5 && text.find_first_not_of(kPlain) == std::string_view::npos)
    return std::string(text);
  return std::string(trim(json::to_yaml(json::Value(text))));
}

}  // namespace

Result<PodSpec> parse_scheduling_spec(std::string_view yaml,
                                      const std::string& pod_namespace,
                                      const std::string& pod_name) {
  if (yaml.empty()) return bad_spec("Annotation does not exist or is empty");
  const auto root = json::parse_yaml_tree(modern_names(yaml));
  if (!root) return bad_spec(root.error().message);
  if (!root->is_null() && root->kind != YamlNode::Kind::kMapping)
    return bad_spec(fmt::format("wanted a mapping such as \"virtualCluster: VC1\", found {}",
                                root->describe()));
  PodSpec spec;
  Fields fields(kSchedulingSpec);
  std::string version;
  fields.text(*root, "version", version);
  fields.text(*root, "virtualCluster", spec.vc);
  fields.number(*root, "priority", spec.priority);
  fields.text(*root, "pinnedCellId", spec.pinned_cell);
  bool gang_release = false;
  fields.boolean(*root, "gangReleaseEnable", gang_release);
  fields.boolean(*root, "lazyPreemptionEnable", spec.lazy_preemption);
  const std::string alone = pod_namespace + "/" + pod_name;
  std::string problem;
  if (version == "v2")
    problem = read_pod_groups(*root, alone, fields, spec);
  else
    read_affinity_group(*root, alone, fields, spec);
  if (!fields.problem.empty()) return fail(Code::kBadRequest, fields.problem);
  if (!version.empty() && version != "v1" && version != "v2")
    return bad_spec(fmt::format("Version is \"{}\", neither v1 nor v2", version));
  if (auto done = check_tenant(spec); !done) return fail(done.error());
  if (!problem.empty()) return bad_spec(problem);
  if (!spec.root.empty()) return spec;
  if (auto done = check_group(spec); !done) return fail(done.error());
  return spec;
}

std::string format_scheduling_spec(const PodSpec& spec) {
  std::string out =
      fmt::format("virtualCluster: {}\npriority: {}\n", scalar(spec.vc), spec.priority);
  if (!spec.pinned_cell.empty()) out += fmt::format("pinnedCellId: {}\n", scalar(spec.pinned_cell));
  if (!spec.leaf_type.empty()) out += fmt::format("leafCellType: {}\n", scalar(spec.leaf_type));
  out += fmt::format("leafCellNumber: {}\nlazyPreemptionEnable: {}\nignoreK8sSuggestedNodes: {}\n",
                     spec.leaves,
                     spec.lazy_preemption,
                     spec.ignore_suggested);
  out += fmt::format("affinityGroup:\n  name: {}\n  members:\n", scalar(spec.group));
  for (const GroupMember& member : spec.members)
    out += fmt::format("  - podNumber: {}\n    leafCellNumber: {}\n", member.pods, member.leaves);
  return out;
}

Result<BindInfo> parse_bind_info(std::string_view yaml) {
  const auto bad = [](std::string_view what) {
    return fail(Code::kInvalid, fmt::format("Pod annotation {}: {}", kBindInfo, what));
  };
  if (trim(yaml).empty()) return bad("Annotation does not exist or is empty");
  const auto root = json::parse_yaml_tree(modern_names(yaml));
  if (!root) return bad(root.error().message);
  if (root->kind != YamlNode::Kind::kMapping)
    return bad(fmt::format("wanted a mapping, found {}", root->describe()));
  BindInfo out;
  Fields fields(kBindInfo);
  fields.text(*root, "node", out.node);
  fields.text(*root, "cellChain", out.chain);
  const YamlNode* leaves = fields.list(*root, "leafCellIsolation");
  for (std::size_t i = 0; leaves != nullptr && i < leaves->items.size(); ++i)
    fields.value(leaves->items[i], "leafCellIsolation", out.leaves.emplace_back());
  auto group = std::make_shared<std::vector<MemberPlacement>>();
  const YamlNode* members = fields.list(*root, "affinityGroupBindInfo");
  for (std::size_t m = 0; members != nullptr && m < members->items.size(); ++m) {
    MemberPlacement& member = group->emplace_back();
    const YamlNode* pods = fields.list(members->items[m], "podPlacements");
    for (std::size_t i = 0; pods != nullptr && i < pods->items.size(); ++i)
      member.pods.push_back(read_placement(pods->items[i], fields));
  }
  if (const YamlNode* tree =
          fields.mapping(*root, "podRootGroupBindInfo", "a mapping with podPlacements"))
    read_pod_group_places(*tree, fields, out.root.emplace_back(), *group);
  if (!fields.problem.empty()) return fail(Code::kInvalid, fields.problem);
  out.group = std::move(group);
  return out;
}

std::string format_bind_info(const BindInfo& bind) {
  if (!bind.root.empty()) return format_pod_group_bind_info(bind);
  std::string out = fmt::format("node: {}\n", scalar(bind.node));
  const auto numbers = [&](std::string_view indent, const std::vector<std::int32_t>& list) {
    for (const std::int32_t n : list) out += fmt::format("{}- {}\n", indent, n);
  };
  out += bind.leaves.empty() ? "leafCellIsolation: []\n" : "leafCellIsolation:\n";
  numbers("", bind.leaves);
  out += fmt::format("cellChain: {}\naffinityGroupBindInfo:\n", scalar(bind.chain));
  for (const MemberPlacement& member :
       bind.group != nullptr ? *bind.group : std::vector<MemberPlacement>{}) {
    out += "- podPlacements:\n";
    for (const PodPlacement& pod : member.pods) {
      out += fmt::format("  - physicalNode: {}\n    physicalLeafCellIndices:\n", scalar(pod.node));
      numbers("    ", pod.leaves);
      out += "    preassignedCellTypes:\n";
      for (const std::string& type : pod.preassigned_types)
        out += fmt::format("    - {}\n", type.empty() ? "\"\"" : scalar(type));
    }
  }
  return out;
}

std::string format_isolation(const BindInfo& bind) {
  std::string out;
  for (const std::int32_t leaf : bind.leaves)
    out += fmt::format("{}{}", out.empty() ? "" : ",", leaf);
  return out;
}

}  // namespace muster::hived
