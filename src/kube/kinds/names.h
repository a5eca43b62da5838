/// More name rules than validate.h promises to others. Empty when fine, else Kubernetes' message.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::kube {

std::string check_dns_1035_label(std::string_view text);
/// All that is wrong with a label or annotation key; Kubernetes reports each by itself.
std::vector<std::string> qualified_name_problems(std::string_view text);
std::string check_config_key(std::string_view text);
std::string check_env_name(std::string_view text);
std::string check_path_segment(std::string_view text);
std::vector<std::string> port_name_problems(std::string_view text);
/// IPv4 without leading zeros, or IPv6.
bool is_address(std::string_view text);
bool is_address_range(std::string_view text);

}  // namespace muster::kube
