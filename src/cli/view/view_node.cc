#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "cli/view/node.h"
#include "cli/view/tabwriter.h"

namespace muster::cli {
namespace {

constexpr int kRuleWidth = 89;
constexpr int kNewerRuleWidth = 99;

std::string rule() { return std::string(kRuleWidth, '-') + "\n"; }

std::string percent(std::int64_t part, std::int64_t whole) {
  return fmt::format("{}%", whole == 0 ? 0 : part * 100 / whole);
}

/// 35 tenths of 4 -> "3.5"; whole numbers without the fraction.
std::string tenths(std::int64_t value) {
  return value % 10 == 0 ? std::to_string(value / 10)
                         : fmt::format("{}.{}", value / 10, value % 10);
}

std::string one_decimal(std::int64_t part, std::int64_t whole) {
  const std::int64_t per_mille = whole == 0 ? 0 : (part * 1000 + whole / 2) / whole;
  return fmt::format("{}.{}%", per_mille / 10, per_mille % 10);
}

struct Totals {
  std::int64_t tenths = 0, gpus = 0, unhealthy = 0;
  std::int64_t active_tenths = 0, active_gpus = 0;  // of nodes that are ready
};

Totals totals_of(const std::vector<NodeInfo>& nodes) {
  Totals totals;
  for (const NodeInfo& node : nodes) {
    totals.tenths += node.allocated_tenths();
    totals.gpus += node.total;
    totals.unhealthy += node.unhealthy;
    if (!node.status.starts_with("ready")) continue;
    totals.active_tenths += node.allocated_tenths();
    totals.active_gpus += node.total;
  }
  return totals;
}

std::string ratio(std::int64_t allocated_tenths, std::int64_t gpus) {
  return fmt::format(
      "{}/{} ({})", tenths(allocated_tenths), gpus, percent(allocated_tenths, gpus * 10));
}

/// The lines below the table: what is called, then the ratio, `between` the two.
std::string cluster_lines(const Totals& totals, std::string_view between) {
  std::string out = fmt::format(
      "Allocated/Total GPUs In Cluster:{}{}\n", between, ratio(totals.tenths, totals.gpus));
  if (totals.active_gpus != totals.gpus) {
    out += fmt::format("Allocated/Total GPUs(Active) In Cluster:{}{}\n",
                       between,
                       ratio(totals.active_tenths, totals.active_gpus));
  }
  if (totals.unhealthy > 0)
    out += fmt::format("Unhealthy/Total GPUs In Cluster:{}{}\n",
                       between,
                       ratio(totals.unhealthy * 10, totals.gpus));
  return out;
}

std::string indented(std::string_view table) {
  std::string out;
  for (const std::string& line : split_nonempty(table, '\n')) out += "  " + line + "\n";
  return out;
}

std::string type_word(GpuMode mode) {
  switch (mode) {
    case GpuMode::kNone:
      return "Normal";
    case GpuMode::kExclusive:
      return "GPUExclusive";
    case GpuMode::kTopology:
      return "GPUTopology";
    case GpuMode::kShare:
      return "GPUShare";
  }
  return "Normal";
}

const char* resource_word(GpuMode mode) {
  return mode == GpuMode::kTopology ? "aliyun.com/gpu" : "nvidia.com/gpu";
}

/// What a node's mode means for those who ask for its GPUs.
std::string description_of(const NodeInfo& node) {
  std::string text;
  if (node.mode == GpuMode::kExclusive)
    text = "Pods get whole GPUs of this node by asking for nvidia.com/gpu.";
  if (node.mode == GpuMode::kTopology)
    text = "Pods get whole GPUs of this node, chosen by their links, by asking for aliyun.com/gpu.";
  if (node.mode == GpuMode::kShare)
    text = "Pods get parts of GPUs of this node by asking for aliyun.com/gpu-mem.";
  if (node.simulated) text += " The GPUs are simulated.";
  return text;
}

std::set<std::string> used_devices(const NodeInfo& node) {
  std::set<std::string> used;
  for (const NodePod& pod : node.pods) {
    for (const std::string& device : split_nonempty(pod.visible, ',')) used.insert(device);
  }
  return used;
}

struct ShareUse {
  std::map<std::string, std::int64_t> memory, core;  // by device
};

ShareUse share_use(const NodeInfo& node) {
  ShareUse use;
  for (const NodePod& pod : node.pods) {
    for (const auto& [device, gib] : pod.memory_by_device) use.memory[device] += gib;
    for (const auto& [device, part] : pod.core_by_device) use.core[device] += part;
  }
  return use;
}

std::string devices_text(const std::map<std::string, std::int64_t>& by_device,
                         std::string_view unit) {
  std::vector<std::string> parts;
  for (const auto& [device, value] : by_device)
    parts.push_back(fmt::format("gpu{}({}{})", device, value, unit));
  return parts.empty() ? "N/A" : join(parts, ",");
}

std::string matrix_text(std::string_view title,
                        const std::vector<std::vector<std::string>>& matrix) {
  if (matrix.empty()) return "";
  std::string table;
  for (std::size_t i = 0; i < matrix.size(); ++i) table += fmt::format("\tGPU{}", i);
  table += "\n";
  for (std::size_t i = 0; i < matrix.size(); ++i)
    table += fmt::format("GPU{}\t{}\n", i, join(matrix[i], "\t"));
  return fmt::format("\n{}:\n{}", title, indented(tabulate(table)));
}

std::string exclusive_block(const NodeInfo& node) {
  std::string out;
  if (!node.pods.empty()) {
    std::string table =
        "NAMESPACE\tNAME\tSTATUS\tGPU(Requested)\n---------\t----\t------\t--------------\n";
    for (const NodePod& pod : node.pods)
      table += fmt::format("{}\t{}\t{}\t{}\n", pod.ns, pod.name, pod.status, pod.gpus);
    out += "\nInstances:\n" + indented(tabulate(table));
  }
  return out;
}

std::string topology_block(const NodeInfo& node) {
  std::string out;
  if (!node.pods.empty()) {
    std::string table =
        "NAMESPACE\tNAME\tGPU(Requested)\tGPU(Allocated)\n---------\t----\t--------------\t--------------\n";
    for (const NodePod& pod : node.pods)
      table += fmt::format("{}\t{}\t{}\t{}\n",
                           pod.ns,
                           pod.name,
                           pod.gpus,
                           pod.visible.empty() ? "N/A" : pod.visible);
    out += "\nInstances:\n" + indented(tabulate(table));
  }
  out += matrix_text("LinkTypeMatrix", node.links) + matrix_text("BandwidthMatrix", node.bandwidth);
  const std::set<std::string> used = used_devices(node);
  std::string table = "INDEX\tSTATUS\tHEALTHY\n-----\t------\t-------\n";
  for (std::int64_t i = 0; i < node.total; ++i) {
    table += fmt::format("{}\t{}\t{}\n",
                         i,
                         used.contains(std::to_string(i)) ? "using" : "idle",
                         i < node.total - node.unhealthy);
  }
  return out + "\nGPUs:\n" + indented(tabulate(table));
}

std::string share_block(const NodeInfo& node) {
  const bool core = node.core_total > 0;
  std::string out;
  if (!node.pods.empty()) {
    std::string table = fmt::format(
        "NAMESPACE\tNAME\tGPU_MEM(Requested)\tGPU_MEM(Allocated){}\n---------\t----\t------------------\t------------------{}\n",
        core ? "\tGPU_CORE(Requested)\tGPU_CORE(Allocated)" : "",
        core ? "\t-------------------\t-------------------" : "");
    for (const NodePod& pod : node.pods) {
      table += fmt::format("{}\t{}\t{}\t{}",
                           pod.ns,
                           pod.name,
                           pod.memory_gib,
                           devices_text(pod.memory_by_device, ".0GiB"));
      if (core) table += fmt::format("\t{}\t{}", pod.core, devices_text(pod.core_by_device, ""));
      table += "\n";
    }
    out += "\nInstances:\n" + indented(tabulate(table));
  }
  ShareUse use = share_use(node);
  const std::int64_t devices = std::max<std::int64_t>(node.total, 1);
  const std::int64_t memory_each = node.memory_total_gib / devices,
                     core_each = node.core_total / devices;
  std::string table = fmt::format(
      "INDEX\tMEMORY(Total)\tMEMORY(Allocated){}\n-----\t-------------\t-----------------{}\n",
      core ? "\tCORE(Total)\tCORE(Allocated)" : "",
      core ? "\t-----------\t---------------" : "");
  for (std::int64_t i = 0; i < node.total; ++i) {
    const std::string device = std::to_string(i);
    table += fmt::format("{}\t{} GiB\t{} GiB({})",
                         i,
                         memory_each,
                         use.memory[device],
                         one_decimal(use.memory[device], memory_each));
    if (core)
      table += fmt::format(
          "\t{}\t{}({})", core_each, use.core[device], one_decimal(use.core[device], core_each));
    table += "\n";
  }
  return out + "\nGPUs:\n" + indented(tabulate(table));
}

std::string summary_block(const NodeInfo& node) {
  std::string table = fmt::format("Total GPUs:\t{}\nAllocated GPUs:\t{}\nUnhealthy GPUs:\t{}\n",
                                  node.total,
                                  tenths(node.allocated_tenths()),
                                  node.unhealthy);
  if (node.mode == GpuMode::kShare) {
    table += fmt::format("Total GPU Memory:\t{} GiB\nAllocated GPU Memory:\t{} GiB\n",
                         node.memory_total_gib,
                         node.memory_allocated_gib);
    if (node.core_total > 0)
      table += fmt::format(
          "Total GPU Core:\t{}\nAllocated GPU Core:\t{}\n", node.core_total, node.core_allocated);
  }
  return "\nGPU Summary:\n" + indented(tabulate(table));
}

}  // namespace

namespace {

std::string summary_table(const std::vector<NodeInfo>& nodes, int columns) {
  std::set<GpuMode> modes;
  bool unhealthy = false;
  for (const NodeInfo& node : nodes) {
    if (node.mode != GpuMode::kNone) modes.insert(node.mode);
    unhealthy = unhealthy || node.unhealthy > 0;
  }
  Rows rows;
  rows.shrinkable = {0, 1};
  std::vector<std::string> head{
      "NAME", "IPADDRESS", "ROLE", "STATUS", "GPU(Total)", "GPU(Allocated)"};
  if (modes.size() > 1) head.push_back("GPU(Mode)");
  if (unhealthy) head.push_back("UNHEALTHY");
  rows.add(std::move(head));
  for (const NodeInfo& node : nodes) {
    std::vector<std::string> row{node.name,
                                 node.ip,
                                 node.role,
                                 node.status,
                                 std::to_string(node.total),
                                 tenths(node.allocated_tenths())};
    if (modes.size() > 1) row.emplace_back(mode_word(node.mode));
    if (unhealthy) row.push_back(std::to_string(node.unhealthy));
    rows.add(std::move(row));
  }
  rows.fit(columns);
  return rows.text();
}

}  // namespace

std::string view_nodes(const std::vector<NodeInfo>& nodes, int columns) {
  return summary_table(nodes, columns) + rule() + cluster_lines(totals_of(nodes), "\n");
}

std::string view_nodes_grouped(std::vector<NodeInfo> nodes, int columns) {
  std::stable_sort(nodes.begin(), nodes.end(), [](const NodeInfo& a, const NodeInfo& b) {
    return a.mode < b.mode;
  });
  std::string out = summary_table(nodes, columns);
  if (nodes.empty() || nodes.back().mode == GpuMode::kNone) return out;
  const Totals totals = totals_of(nodes);
  const bool one_kind = nodes.front().mode == nodes.back().mode;
  out += std::string(kNewerRuleWidth, '-') + "\nAllocated/Total GPUs ";
  if (one_kind) out += fmt::format("of nodes which own resource {} ", resource_word(nodes[0].mode));
  out += fmt::format("In Cluster:\n{}/{} ({})\n",
                     tenths(totals.tenths),
                     totals.gpus,
                     one_decimal(totals.tenths, totals.gpus * 10));
  if (totals.unhealthy > 0)
    out += fmt::format("Unhealthy/Total GPUs In Cluster:\n{}/{} ({})\n",
                       totals.unhealthy,
                       totals.gpus,
                       one_decimal(totals.unhealthy, totals.gpus));
  return out;
}

std::string view_share_nodes(const std::vector<NodeInfo>& nodes) {
  std::string table =
      "NAME\tIPADDRESS\tROLE\tSTATUS\tGPUs(Allocated/Total)\tGPU_MEMORY(Allocated/Total)\tGPU_CORE(Allocated/Total)\n";
  std::int64_t memory = 0, memory_total = 0, core = 0, core_total = 0;
  for (const NodeInfo& node : nodes) {
    table += fmt::format(
        "{}\t{}\t{}\t{}\t{}/{}\t{}.0/{}.0 GiB\t{}\n",
        node.name,
        node.ip,
        node.role,
        node.status,
        tenths(node.allocated_tenths()),
        node.total,
        node.memory_allocated_gib,
        node.memory_total_gib,
        node.core_total > 0 ? fmt::format("{}/{}", node.core_allocated, node.core_total) : "__");
    memory += node.memory_allocated_gib;
    memory_total += node.memory_total_gib;
    core += node.core_allocated;
    core_total += node.core_total;
  }
  const Totals totals = totals_of(nodes);
  std::string out = tabulate(table) + std::string(107, '-') + "\n";
  out += fmt::format("Allocated/Total GPUs In Cluster:\n{}/{} ({})\n",
                     tenths(totals.tenths),
                     totals.gpus,
                     one_decimal(totals.tenths, totals.gpus * 10));
  out += fmt::format("Allocated/Total GPU Memory In Cluster:\n{}.0/{}.0 GiB({})\n",
                     memory,
                     memory_total,
                     one_decimal(memory, memory_total));
  if (core_total > 0)
    out += fmt::format("Allocated/Total GPU Core In Cluster:\n{}/{} ({})\n",
                       core,
                       core_total,
                       one_decimal(core, core_total));
  return out;
}

std::string view_nodes_details(const std::vector<NodeInfo>& nodes, bool footer) {
  std::string out;
  for (const NodeInfo& node : nodes) {
    out += fmt::format(
        "\nNAME:       {}\nIPADDRESS:  {}\nROLE:       {}\n\n", node.name, node.ip, node.role);
    if (!node.pods.empty()) {
      std::string table = "NAMESPACE\tNAME\tGPU REQUESTS\tGPU LIMITS\n";
      for (const NodePod& pod : node.pods) {
        const std::string gpus = node.mode == GpuMode::kShare ? fmt::format("{}GiB", pod.memory_gib)
                                                              : std::to_string(pod.gpus);
        table += fmt::format("{}\t{}\t{}\t{}\n", pod.ns, pod.name, gpus, gpus);
      }
      out += tabulate(table) + "\n";
    }
    std::string lines =
        fmt::format("Total GPUs In Node {}:\t{}\nAllocated GPUs In Node {}:\t{} ({})\n",
                    node.name,
                    node.total,
                    node.name,
                    tenths(node.allocated_tenths()),
                    percent(node.allocated_tenths(), node.total * 10));
    if (node.unhealthy > 0)
      lines += fmt::format("Unhealthy GPUs In Node {}:\t{} ({})\n",
                           node.name,
                           node.unhealthy,
                           percent(node.unhealthy, node.total));
    out += tabulate(lines) + rule();
  }
  if (!footer) return out;
  return out + "\n" + tabulate(cluster_lines(totals_of(nodes), "\t"));
}

std::string view_nodes_wide(const std::vector<NodeInfo>& nodes) {
  std::string out;
  for (const GpuMode mode :
       {GpuMode::kNone, GpuMode::kExclusive, GpuMode::kTopology, GpuMode::kShare}) {
    for (const NodeInfo& node : nodes) {
      if (node.mode != mode) continue;
      out += "\n" +
             tabulate(fmt::format("Name:\t{}\nStatus:\t{}\nRole:\t{}\nType:\t{}\nAddress:\t{}\n",
                                  node.name,
                                  node.status,
                                  node.role,
                                  type_word(mode),
                                  node.ip));
      if (const std::string text = description_of(node); !text.empty())
        out += fmt::format("Description:\n  {}\n", text);
      if (mode == GpuMode::kNone) continue;
      out += mode == GpuMode::kExclusive  ? exclusive_block(node)
             : mode == GpuMode::kTopology ? topology_block(node)
                                          : share_block(node);
      out += summary_block(node);
    }
  }
  return out;
}

void use_newer_words(std::vector<NodeInfo>& nodes) {
  for (NodeInfo& node : nodes) {
    if (node.status.starts_with("ready")) node.status[0] = 'R';
    if (node.status.starts_with("notReady")) node.status[0] = 'N';
  }
}

namespace {

json::Object by_device_json(const std::map<std::string, std::int64_t>& by_device) {
  json::Object object;
  for (const auto& [device, amount] : by_device) object[device] = amount;
  return object;
}

json::Array instances_json(const NodeInfo& node) {
  json::Array instances;
  for (const NodePod& pod : node.pods) {
    json::Object instance{{"name", pod.name}, {"namespace", pod.ns}, {"status", pod.status}};
    if (node.mode == GpuMode::kShare) {
      instance["requestGPUMemory"] = pod.memory_gib;
      instance["requestGPUCore"] = pod.core;
      instance["gpuMemoryAllocation"] = by_device_json(pod.memory_by_device);
      instance["gpuCoreAllocation"] = by_device_json(pod.core_by_device);
    } else {
      instance["requestGPUs"] = pod.gpus;
    }
    if (node.mode == GpuMode::kTopology) {
      json::Array devices;
      for (const std::string& device : split_nonempty(pod.visible, ','))
        devices.emplace_back(device);
      instance["allocation"] = devices;
      instance["visibleGPUs"] = std::move(devices);
    }
    instances.push_back(std::move(instance));
  }
  return instances;
}

json::Array matrix_json(const std::vector<std::vector<std::string>>& matrix) {
  json::Array rows;
  for (const auto& row : matrix) {
    json::Array cells;
    for (const std::string& cell : row) {
      const auto number = parse_int(cell);
      cells.push_back(number ? json::Value(*number) : json::Value(cell));
    }
    rows.push_back(std::move(cells));
  }
  return rows;
}

constexpr std::int64_t kGib = 1LL << 30;

void add_share_json(json::Object& object, const NodeInfo& node) {
  object["totalGPUMemory"] = node.memory_total_gib * kGib;
  object["allocatedGPUMemory"] = node.memory_allocated_gib * kGib;
  object["totalGPUCore"] = node.core_total;
  object["allocatedGPUCore"] = node.core_allocated;
  ShareUse use = share_use(node);
  json::Array devices;
  for (std::int64_t i = 0; i < node.total; ++i) {
    const std::string id = std::to_string(i);
    devices.push_back(json::Object{{"id", id},
                                   {"totalGPUMemory", node.memory_total_gib / node.total * kGib},
                                   {"allocatedGPUMemory", use.memory[id] * kGib},
                                   {"totalGPUCore", node.core_total / node.total},
                                   {"allocatedGPUCore", use.core[id]}});
  }
  object["devices"] = std::move(devices);
}

void add_topology_json(json::Object& object, const NodeInfo& node) {
  object["gpuTopology"] = json::Object{{"linkMatrix", matrix_json(node.links)},
                                       {"bandwidthMatrix", matrix_json(node.bandwidth)}};
  const std::set<std::string> used = used_devices(node);
  json::Array devices;
  for (std::int64_t i = 0; i < node.total; ++i) {
    devices.push_back(json::Object{{"id", std::to_string(i)},
                                   {"status", used.contains(std::to_string(i)) ? "using" : "idle"},
                                   {"healthy", i < node.total - node.unhealthy}});
  }
  object["devices"] = std::move(devices);
}

}  // namespace

json::Value nodes_as_json(const std::vector<NodeInfo>& nodes) {
  json::Array by_mode[4];
  for (const NodeInfo& node : nodes) {
    json::Object object{{"name", node.name},
                        {"description", description_of(node)},
                        {"ip", node.ip},
                        {"status", node.status},
                        {"role", node.role},
                        {"type", type_word(node.mode)}};
    if (node.mode != GpuMode::kNone) {
      object["instances"] = instances_json(node);
      object["totalGPUs"] = node.total;
      object["allocatedGPUs"] = node.mode == GpuMode::kShare
                                    ? json::Value(static_cast<double>(node.allocated_tenths()) / 10)
                                    : json::Value(node.allocated);
      object["unhealthyGPUs"] = node.unhealthy;
      object["gpuMetrics"] = json::Array{};
    }
    if (node.mode == GpuMode::kShare) add_share_json(object, node);
    if (node.mode == GpuMode::kTopology) add_topology_json(object, node);
    by_mode[static_cast<int>(node.mode)].push_back(std::move(object));
  }
  return json::Object{{"gpuExclusiveNodes", std::move(by_mode[1])},
                      {"gpuShareNodes", std::move(by_mode[3])},
                      {"gpuTopologyNodes", std::move(by_mode[2])},
                      {"normalNodes", std::move(by_mode[0])}};
}

}  // namespace muster::cli
