#include "agent/network/host_ports.h"

#include <fmt/core.h>

namespace muster::agent {

using json::at;

std::vector<HostPorts::Problem> HostPorts::open(const json::Value& pod,
                                                const std::string& address) {
  close();
  std::vector<Problem> problems;
  for (const auto* list : {"initContainers", "containers"}) {
    for (const auto& container : json::array_at(pod, "spec", list)) {
      for (const auto& port : json::array_at(container, "ports")) {
        const auto number = json::int_at(port, "hostPort");
        const auto protocol = json::as_string(at(port, "protocol"), "TCP");
        if (number == 0) continue;
        ProxyPorts ports;
        ports.listen_address = json::text_at(port, "hostIP");
        if (ports.listen_address.empty()) ports.listen_address = "0.0.0.0";
        ports.listen_port = static_cast<int>(number);
        ports.target_address = address;
        ports.target_port = static_cast<int>(json::int_at(port, "containerPort"));
        Result<void> opened;
        if (protocol == "TCP") {
          tcp_.push_back(std::make_unique<TcpProxy>(*loop_));
          opened = tcp_.back()->start(std::move(ports));
        } else if (protocol == "UDP") {
          udp_.push_back(std::make_unique<UdpProxy>(*loop_));
          opened = udp_.back()->start(std::move(ports));
        } else {
          problems.push_back({"HostPortNotSupported",
                              fmt::format("Host port {} is not opened: {} is not forwarded on this "
                                          "node, only TCP and UDP are",
                                          number,
                                          protocol)});
        }
        if (!opened)
          problems.push_back(
              {"HostPortConflict",
               fmt::format("Cannot open host port {}: {}", number, opened.error().message)});
      }
    }
  }
  return problems;
}

void HostPorts::close() {
  tcp_.clear();
  udp_.clear();
}

}  // namespace muster::agent
