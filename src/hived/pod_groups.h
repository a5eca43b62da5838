/// The second version of HiveD's annotations: a tree of pod groups in `pod-scheduling-spec`, and the
/// same tree with places in `pod-bind-info`. annotations.h is what others call.
#pragma once

#include <string>
#include <vector>

#include "engine/model/cell_request.h"
#include "hived/fields.h"

namespace muster::hived {

/// `version: v2`: what else it has than the first version. A pod without a tree is a group of its
/// own, named `alone`. Problems are left in `fields` or come back as what is wrong; "" if nothing.
[[nodiscard]] std::string read_pod_groups(const json::YamlNode& root,
                                          const std::string& alone,
                                          Fields& fields,
                                          engine::cells::PodSpec& spec);

/// `podRootGroupBindInfo`: the shape of the tree, and the places of its groups with pods in order.
void read_pod_group_places(const json::YamlNode& node,
                           Fields& fields,
                           engine::cells::PodGroup& group,
                           std::vector<engine::cells::MemberPlacement>& members);
/// The whole `pod-bind-info` of a pod of a tree, as YAML.
[[nodiscard]] std::string format_pod_group_bind_info(const engine::cells::BindInfo& bind);

/// One element of `podPlacements`.
[[nodiscard]] engine::cells::PodPlacement read_placement(const json::YamlNode& node,
                                                         Fields& fields);

}  // namespace muster::hived
