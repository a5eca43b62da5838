/// A pod's own names: hostname and /etc/hosts. Services and other pods are answered by Dns.
#pragma once

#include <string>

#include "json/json.h"

namespace muster::agent {

/// spec.hostname or the pod's name, at most 63 characters.
std::string pod_hostname(const json::Value& pod);
/// "<hostname>.<subdomain>.<namespace>.svc.cluster.local", or empty without a subdomain.
std::string pod_fqdn(const json::Value& pod);
std::string hosts_file(const json::Value& pod, const std::string& address);

}  // namespace muster::agent
