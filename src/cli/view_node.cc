#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "cli/node.h"
#include "cli/tabwriter.h"

namespace muster::cli {
namespace {

constexpr int kRuleWidth = 89;

std::string rule() { return std::string(kRuleWidth, '-') + "\n"; }

std::string percent(std::int64_t part, std::int64_t whole) { return fmt::format("{}%", whole == 0 ? 0 : part * 100 / whole); }

/// 35 tenths of 4 -> "3.5"; whole numbers without the fraction.
std::string tenths(std::int64_t value) { return value % 10 == 0 ? std::to_string(value / 10) : fmt::format("{}.{}", value / 10, value % 10); }

std::string one_decimal(std::int64_t part, std::int64_t whole) {
  const std::int64_t per_mille = whole == 0 ? 0 : (part * 1000 + whole / 2) / whole;
  return fmt::format("{}.{}%", per_mille / 10, per_mille % 10);
}

struct Totals {
  std::int64_t tenths = 0, gpus = 0, unhealthy = 0;
};

Totals totals_of(const std::vector<NodeInfo>& nodes) {
  Totals totals;
  for (const NodeInfo& node : nodes) {
    totals.tenths += node.allocated_tenths();
    totals.gpus += node.total;
    totals.unhealthy += node.unhealthy;
  }
  return totals;
}

std::string ratio(const Totals& totals) {
  return fmt::format("{}/{} ({})", tenths(totals.tenths), totals.gpus, percent(totals.tenths, totals.gpus * 10));
}

std::string indented(std::string_view table) {
  std::string out;
  for (const std::string& line : split_nonempty(table, '\n')) out += "  " + line + "\n";
  return out;
}

std::string type_word(GpuMode mode) {
  switch (mode) {
    case GpuMode::kNone: return "Normal";
    case GpuMode::kExclusive: return "GPUExclusive";
    case GpuMode::kTopology: return "GPUTopology";
    case GpuMode::kShare: return "GPUShare";
  }
  return "Normal";
}

std::string devices_text(const std::map<std::string, std::int64_t>& by_device, std::string_view unit) {
  std::vector<std::string> parts;
  for (const auto& [device, value] : by_device) parts.push_back(fmt::format("gpu{}({}{})", device, value, unit));
  return parts.empty() ? "N/A" : join(parts, ",");
}

std::string matrix_text(std::string_view title, const std::vector<std::vector<std::string>>& matrix) {
  if (matrix.empty()) return "";
  std::string table;
  for (std::size_t i = 0; i < matrix.size(); ++i) table += fmt::format("\tGPU{}", i);
  table += "\n";
  for (std::size_t i = 0; i < matrix.size(); ++i) table += fmt::format("GPU{}\t{}\n", i, join(matrix[i], "\t"));
  return fmt::format("\n{}:\n{}", title, indented(tabulate(table)));
}

std::string exclusive_block(const NodeInfo& node) {
  std::string out;
  if (!node.pods.empty()) {
    std::string table = "NAMESPACE\tNAME\tSTATUS\tGPU(Requested)\n---------\t----\t------\t--------------\n";
    for (const NodePod& pod : node.pods) table += fmt::format("{}\t{}\t{}\t{}\n", pod.ns, pod.name, pod.status, pod.gpus);
    out += "\nInstances:\n" + indented(tabulate(table));
  }
  return out;
}

std::string topology_block(const NodeInfo& node) {
  std::string out;
  std::set<std::string> used;
  if (!node.pods.empty()) {
    std::string table = "NAMESPACE\tNAME\tGPU(Requested)\tGPU(Allocated)\n---------\t----\t--------------\t--------------\n";
    for (const NodePod& pod : node.pods) {
      table += fmt::format("{}\t{}\t{}\t{}\n", pod.ns, pod.name, pod.gpus, pod.visible.empty() ? "N/A" : pod.visible);
      for (const std::string& device : split_nonempty(pod.visible, ',')) used.insert(device);
    }
    out += "\nInstances:\n" + indented(tabulate(table));
  }
  out += matrix_text("LinkTypeMatrix", node.links) + matrix_text("BandwidthMatrix", node.bandwidth);
  std::string table = "INDEX\tSTATUS\tHEALTHY\n-----\t------\t-------\n";
  for (std::int64_t i = 0; i < node.total; ++i) {
    table += fmt::format("{}\t{}\t{}\n", i, used.contains(std::to_string(i)) ? "using" : "idle", i < node.total - node.unhealthy);
  }
  return out + "\nGPUs:\n" + indented(tabulate(table));
}

std::string share_block(const NodeInfo& node) {
  std::string out;
  std::map<std::string, std::int64_t> memory, core;
  if (!node.pods.empty()) {
    std::string table = "NAMESPACE\tNAME\tGPU_MEM(Requested)\tGPU_MEM(Allocated)\n---------\t----\t------------------\t------------------\n";
    for (const NodePod& pod : node.pods) {
      table += fmt::format("{}\t{}\t{}\t{}\n", pod.ns, pod.name, pod.memory_gib, devices_text(pod.memory_by_device, ".0GiB"));
      for (const auto& [device, gib] : pod.memory_by_device) memory[device] += gib;
      for (const auto& [device, percent_given] : pod.core_by_device) core[device] += percent_given;
    }
    out += "\nInstances:\n" + indented(tabulate(table));
  }
  const std::int64_t per_device = node.total > 0 ? node.memory_total_gib / node.total : 0;
  std::string table = "INDEX\tMEMORY(Total)\tMEMORY(Allocated)\n-----\t-------------\t-----------------\n";
  for (std::int64_t i = 0; i < node.total; ++i) {
    const std::int64_t used = memory[std::to_string(i)];
    table += fmt::format("{}\t{} GiB\t{} GiB({})\n", i, per_device, used, one_decimal(used, per_device));
  }
  return out + "\nGPUs:\n" + indented(tabulate(table));
}

std::string summary_block(const NodeInfo& node) {
  std::string table = fmt::format("Total GPUs:\t{}\nAllocated GPUs:\t{}\nUnhealthy GPUs:\t{}\n", node.total, tenths(node.allocated_tenths()), node.unhealthy);
  if (node.mode == GpuMode::kShare) {
    table += fmt::format("Total GPU Memory:\t{} GiB\nAllocated GPU Memory:\t{} GiB\n", node.memory_total_gib, node.memory_allocated_gib);
    if (node.core_total > 0) table += fmt::format("Total GPU Core:\t{}\nAllocated GPU Core:\t{}\n", node.core_total, node.core_allocated);
  }
  return "\nGPU Summary:\n" + indented(tabulate(table));
}

}  // namespace

std::string view_nodes(const std::vector<NodeInfo>& nodes, int columns) {
  std::set<GpuMode> modes;
  bool unhealthy = false;
  for (const NodeInfo& node : nodes) {
    if (node.mode != GpuMode::kNone) modes.insert(node.mode);
    unhealthy = unhealthy || node.unhealthy > 0;
  }
  Rows rows;
  rows.shrinkable = {0, 1};
  std::vector<std::string> head{"NAME", "IPADDRESS", "ROLE", "STATUS", "GPU(Total)", "GPU(Allocated)"};
  if (modes.size() > 1) head.push_back("GPU(Mode)");
  if (unhealthy) head.push_back("UNHEALTHY");
  rows.add(std::move(head));
  for (const NodeInfo& node : nodes) {
    std::vector<std::string> row{node.name, node.ip, node.role, node.status, std::to_string(node.total), tenths(node.allocated_tenths())};
    if (modes.size() > 1) row.emplace_back(mode_word(node.mode));
    if (unhealthy) row.push_back(std::to_string(node.unhealthy));
    rows.add(std::move(row));
  }
  rows.fit(columns);
  const Totals totals = totals_of(nodes);
  std::string out = rows.text() + rule() + "Allocated/Total GPUs In Cluster:\n" + ratio(totals) + "\n";
  if (unhealthy) {
    out += fmt::format("Unhealthy/Total GPUs In Cluster:\n{}/{} ({})\n", totals.unhealthy, totals.gpus, percent(totals.unhealthy, totals.gpus));
  }
  return out;
}

std::string view_share_nodes(const std::vector<NodeInfo>& nodes) {
  std::string table = "NAME\tIPADDRESS\tROLE\tSTATUS\tGPUs(Allocated/Total)\tGPU_MEMORY(Allocated/Total)\tGPU_CORE(Allocated/Total)\n";
  std::int64_t memory = 0, memory_total = 0, core = 0, core_total = 0;
  for (const NodeInfo& node : nodes) {
    table += fmt::format("{}\t{}\t{}\t{}\t{}/{}\t{}.0/{}.0 GiB\t{}\n", node.name, node.ip, node.role, node.status, tenths(node.allocated_tenths()),
                         node.total, node.memory_allocated_gib, node.memory_total_gib,
                         node.core_total > 0 ? fmt::format("{}/{}", node.core_allocated, node.core_total) : "__");
    memory += node.memory_allocated_gib;
    memory_total += node.memory_total_gib;
    core += node.core_allocated;
    core_total += node.core_total;
  }
  const Totals totals = totals_of(nodes);
  std::string out = tabulate(table) + std::string(107, '-') + "\n";
  out += fmt::format("Allocated/Total GPUs In Cluster:\n{}/{} ({})\n", tenths(totals.tenths), totals.gpus, one_decimal(totals.tenths, totals.gpus * 10));
  out += fmt::format("Allocated/Total GPU Memory In Cluster:\n{}.0/{}.0 GiB({})\n", memory, memory_total, one_decimal(memory, memory_total));
  if (core_total > 0) out += fmt::format("Allocated/Total GPU Core In Cluster:\n{}/{} ({})\n", core, core_total, one_decimal(core, core_total));
  return out;
}

std::string view_nodes_details(const std::vector<NodeInfo>& nodes, bool footer) {
  std::string out;
  for (const NodeInfo& node : nodes) {
    out += fmt::format("\nNAME:       {}\nIPADDRESS:  {}\nROLE:       {}\n\n", node.name, node.ip, node.role);
    if (!node.pods.empty()) {
      std::string table = "NAMESPACE\tNAME\tGPU REQUESTS\tGPU LIMITS\n";
      for (const NodePod& pod : node.pods) {
        const std::string gpus = node.mode == GpuMode::kShare ? fmt::format("{}GiB", pod.memory_gib) : std::to_string(pod.gpus);
        table += fmt::format("{}\t{}\t{}\t{}\n", pod.ns, pod.name, gpus, gpus);
      }
      out += tabulate(table) + "\n";
    }
    std::string lines = fmt::format("Total GPUs In Node {}:\t{}\nAllocated GPUs In Node {}:\t{} ({})\n", node.name, node.total, node.name,
                                    tenths(node.allocated_tenths()), percent(node.allocated_tenths(), node.total * 10));
    if (node.unhealthy > 0) lines += fmt::format("Unhealthy GPUs In Node {}:\t{} ({})\n", node.name, node.unhealthy, percent(node.unhealthy, node.total));
    out += tabulate(lines) + rule();
  }
  if (!footer) return out;
  const Totals totals = totals_of(nodes);
  std::string lines = fmt::format("Allocated/Total GPUs In Cluster:\t{}\n", ratio(totals));
  if (totals.unhealthy > 0) {
    lines += fmt::format("Unhealthy/Total GPUs In Cluster:\t{}/{} ({})\n", totals.unhealthy, totals.gpus, percent(totals.unhealthy, totals.gpus));
  }
  return out + "\n" + tabulate(lines);
}

std::string view_nodes_wide(const std::vector<NodeInfo>& nodes) {
  std::string out;
  for (const GpuMode mode : {GpuMode::kNone, GpuMode::kExclusive, GpuMode::kTopology, GpuMode::kShare}) {
    for (const NodeInfo& node : nodes) {
      if (node.mode != mode) continue;
      out += "\n" + tabulate(fmt::format("Name:\t{}\nStatus:\t{}\nRole:\t{}\nType:\t{}\nAddress:\t{}\n", node.name, node.status, node.role, type_word(mode), node.ip));
      if (node.simulated) out += "Description:\n  The GPUs of this node are simulated.\n";
      if (mode == GpuMode::kNone) continue;
      out += mode == GpuMode::kExclusive ? exclusive_block(node) : mode == GpuMode::kTopology ? topology_block(node) : share_block(node);
      out += summary_block(node);
    }
  }
  return out;
}

json::Value nodes_as_json(const std::vector<NodeInfo>& nodes) {
  json::Array by_mode[4];
  for (const NodeInfo& node : nodes) {
    json::Object object{{"name", node.name}, {"description", ""}, {"ip", node.ip}, {"status", node.status}, {"role", node.role}, {"type", type_word(node.mode)}};
    if (node.mode != GpuMode::kNone) {
      json::Array instances;
      for (const NodePod& pod : node.pods) {
        json::Object instance{{"name", pod.name}, {"namespace", pod.ns}, {"status", pod.status}};
        if (node.mode == GpuMode::kShare) {
          instance["requestGPUMemory"] = pod.memory_gib;
          instance["requestGPUCore"] = pod.core;
          json::Object allocation;
          for (const auto& [device, gib] : pod.memory_by_device) allocation[device] = gib;
          instance["gpuMemoryAllocation"] = std::move(allocation);
        } else {
          instance["requestGPUs"] = pod.gpus;
          if (node.mode == GpuMode::kTopology) instance["visibleGPUs"] = pod.visible;
        }
        instances.push_back(std::move(instance));
      }
      object["instances"] = std::move(instances);
      object["totalGPUs"] = node.total;
      if (node.mode == GpuMode::kShare) {
        object["allocatedGPUs"] = static_cast<double>(node.allocated_tenths()) / 10;
        constexpr std::int64_t kGib = 1LL << 30;
        object["totalGPUMemory"] = node.memory_total_gib * kGib;
        object["allocatedGPUMemory"] = node.memory_allocated_gib * kGib;
        object["totalGPUCore"] = node.core_total;
        object["allocatedGPUCore"] = node.core_allocated;
      } else {
        object["allocatedGPUs"] = node.allocated;
      }
      object["unhealthyGPUs"] = node.unhealthy;
      object["gpuMetrics"] = json::Array{};
    }
    by_mode[static_cast<int>(node.mode)].push_back(std::move(object));
  }
  return json::Object{{"gpuExclusiveNodes", std::move(by_mode[1])}, {"gpuShareNodes", std::move(by_mode[3])},
                      {"gpuTopologyNodes", std::move(by_mode[2])}, {"normalNodes", std::move(by_mode[0])}};
}

}  // namespace muster::cli
