#include "hived/pod_groups.h"

#include <fmt/core.h>

#include "json/json.h"

namespace muster::hived {
namespace {

using engine::cells::BindInfo;
using engine::cells::GroupMember;
using engine::cells::MemberPlacement;
using engine::cells::PodGroup;
using engine::cells::PodPlacement;
using engine::cells::PodSpec;
using json::Array;
using json::Object;
using json::Value;
using json::YamlNode;

/// Racks in pools in halls need four; what is deeper is a mistake, or means harm.
constexpr int kDepthMax = 16;
constexpr std::size_t kGroupsMax = 1000;

class TreeReader {
 public:
  TreeReader(Fields& fields, PodSpec& spec) : fields_(fields), spec_(spec) {}

  void read(const YamlNode& node, PodGroup& group, int depth) {
    if (++groups_ > kGroupsMax || depth > kDepthMax) {
      note(fmt::format(
          "PodRootGroup is a tree of more than {} groups or {} levels", kGroupsMax, kDepthMax));
      return;
    }
    fields_.text(node, "name", group.name);
    fields_.text(node, "withinOneCell", group.within);
    if (const YamlNode* pod = fields_.mapping(node, "pod", "a mapping with podMinNumber"))
      read_pods(*pod, group);
    const YamlNode* children = fields_.list(node, "childGroups");
    for (std::size_t i = 0; children != nullptr && i < children->items.size(); ++i) {
      if (children->items[i].kind != YamlNode::Kind::kMapping) {
        fields_.wrong(children->items[i], "childGroups", "a mapping with pod or childGroups");
        continue;
      }
      read(children->items[i], group.children.emplace_back(), depth + 1);
    }
    if (group.member < 0 && group.children.empty())
      note(fmt::format("PodRootGroup: group {} has neither pod nor childGroups", group.name));
  }

  std::string problem;

 private:
  void note(std::string what) {
    if (problem.empty()) problem = std::move(what);
  }

  void read_pods(const YamlNode& node, PodGroup& group) {
    GroupMember member;
    std::int32_t most = 0;
    bool current = false;
    fields_.number(node, "podMinNumber", member.pods);
    fields_.number(node, "podMaxNumber", most);
    fields_.boolean(node, "containsCurrentPod", current);
    if (const YamlNode* cells =
            fields_.mapping(node, "cellsPerPod", "a mapping with cellType and cellNumber")) {
      fields_.text(*cells, "cellType", member.cell_type);
      fields_.number(*cells, "cellNumber", member.cell_number);
    }
    if (member.pods <= 0) note("PodRootGroup has non-positive PodMinNumber");
    if (most != 0 && most < member.pods) note("PodRootGroup has PodMaxNumber below PodMinNumber");
    if (member.cell_number <= 0) note("PodRootGroup has non-positive CellsPerPod.CellNumber");
    group.member = static_cast<std::int32_t>(spec_.members.size());
    if (current && spec_.member >= 0) note("PodRootGroup contains the current pod more than once");
    if (current) spec_.member = group.member;
    spec_.members.push_back(std::move(member));
  }

  Fields& fields_;
  PodSpec& spec_;
  std::size_t groups_ = 0;
};

Value place_json(const PodPlacement& pod) {
  Array leaves, types;
  for (const std::int32_t leaf : pod.leaves) leaves.push_back(leaf);
  for (const std::string& type : pod.preassigned_types) types.push_back(Value(type));
  return Object{{"physicalNode", pod.node},
                {"physicalLeafCellIndices", std::move(leaves)},
                {"preassignedCellTypes", std::move(types)}};
}

Value group_json(const PodGroup& group, const std::vector<MemberPlacement>& members) {
  Array pods, children;
  if (group.member >= 0 && static_cast<std::size_t>(group.member) < members.size()) {
    for (const PodPlacement& pod : members[static_cast<std::size_t>(group.member)].pods)
      pods.push_back(place_json(pod));
  }
  for (const PodGroup& child : group.children) children.push_back(group_json(child, members));
  return Object{{"podPlacements", std::move(pods)}, {"childGroupBindingInfo", std::move(children)}};
}

}  // namespace

std::string read_pod_groups(const YamlNode& root,
                            const std::string& alone,
                            Fields& fields,
                            PodSpec& spec) {
  std::string type;
  std::int32_t number = 0;
  fields.text(root, "cellType", type);
  fields.number(root, "cellNumber", number);
  spec.ignore_suggested = true;
  if (number <= 0) return "CellNumber is non-positive";
  PodGroup& tree = spec.root.emplace_back();
  const YamlNode* node = fields.mapping(root, "podRootGroup", "a mapping with name and pod");
  if (node == nullptr) {
    tree.name = alone;
    tree.member = spec.member = 0;
    spec.members.push_back({.pods = 1, .cell_type = type, .cell_number = number});
  } else {
    TreeReader reader(fields, spec);
    reader.read(*node, tree, 1);
    if (!reader.problem.empty()) return reader.problem;
    if (spec.member < 0) return "PodRootGroup does not contain the current pod";
  }
  const GroupMember& own = spec.members[static_cast<std::size_t>(spec.member)];
  if (own.cell_type != type || own.cell_number != number)
    return fmt::format(
        "PodRootGroup: the current pod has {} cells of type \"{}\", not {} of \"{}\"",
        own.cell_number,
        own.cell_type,
        number,
        type);
  spec.group = tree.name;
  return spec.group.empty() ? "PodRootGroup.Name is empty" : "";
}

PodPlacement read_placement(const YamlNode& node, Fields& fields) {
  PodPlacement pod;
  fields.text(node, "physicalNode", pod.node);
  const YamlNode* leaves = fields.list(node, "physicalLeafCellIndices");
  for (std::size_t i = 0; leaves != nullptr && i < leaves->items.size(); ++i)
    fields.value(leaves->items[i], "physicalLeafCellIndices", pod.leaves.emplace_back());
  const YamlNode* types = fields.list(node, "preassignedCellTypes");
  for (std::size_t i = 0; types != nullptr && i < types->items.size(); ++i)
    pod.preassigned_types.push_back(types->items[i].text);
  return pod;
}

void read_pod_group_places(const YamlNode& node,
                           Fields& fields,
                           PodGroup& group,
                           std::vector<MemberPlacement>& members) {
  const YamlNode* pods = fields.list(node, "podPlacements");
  if (pods != nullptr && !pods->items.empty()) {
    group.member = static_cast<std::int32_t>(members.size());
    MemberPlacement& member = members.emplace_back();
    for (const YamlNode& pod : pods->items) member.pods.push_back(read_placement(pod, fields));
  }
  const YamlNode* children = fields.list(node, "childGroupBindingInfo");
  for (std::size_t i = 0; children != nullptr && i < children->items.size(); ++i) {
    if (members.size() >= kGroupsMax)
      return fields.wrong(*children, "childGroupBindingInfo", "at most 1000 groups");
    read_pod_group_places(children->items[i], fields, group.children.emplace_back(), members);
  }
}

std::string format_pod_group_bind_info(const BindInfo& bind) {
  Array leaves;
  for (const std::int32_t leaf : bind.leaves) leaves.push_back(leaf);
  static const std::vector<MemberPlacement> kNobody;
  return json::to_yaml(
      Object{{"version", "v2"},
             {"node", bind.node},
             {"leafCellIsolation", std::move(leaves)},
             {"cellChain", bind.chain},
             {"podRootGroupBindInfo",
              group_json(bind.root[0], bind.group != nullptr ? *bind.group : kNobody)}});
}

}  // namespace muster::hived
