#include "pai/deploy/layout.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/quantity.h"
#include "base/strings.h"
#include "pai/deploy/services.h"

namespace muster::pai {
namespace {

constexpr std::int64_t kMebibyte = 1024 * 1024;

bool good_host(std::string_view name) {
  return !name.empty() && name.size() <= 63 && name.front() != '-' && name.back() != '-' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
         });
}

tl::unexpected<Error> wrong(const std::string& where, std::string what) {
  return fail(Code::kInvalid, fmt::format("{}: {}", where, what));
}

/// hostname,ip on each line.
Result<void> read_csv(const std::string& path, bool master, const WorkerSize& size, Layout& out) {
  const auto text = read_file(path);
  if (!text) return fail(text.error());
  int number = 0;
  for (const std::string& line : split(*text, '\n')) {
    ++number;
    if (trim(line).empty()) continue;
    const auto parts = split(trim(line), ',');
    const std::string where = fmt::format("{}: line {}", path, number);
    if (parts.size() != 2 || !good_host(parts[0]) || parts[1].empty())
      return wrong(where,
                   fmt::format("wanted hostname,ip in lower case without blanks, found {}",
                               muster::quoted(trim(line))));
    out.machines.push_back({.name = parts[0],
                            .address = parts[1],
                            .master = master,
                            .gpus = master ? 0 : size.gpus,
                            .cpus = size.cpus,
                            .memory = size.memory});
  }
  return {};
}

/// machine-sku: {NAME: {mem, cpu: {vcore}, computing-device: {count}}}, machine-list: [{hostname,
/// hostip, machine-type, pai-master, pai-worker}].
Result<void> read_yaml(const std::string& path, const WorkerSize& size, Layout& out) {
  const auto text = read_file(path);
  if (!text) return fail(text.error());
  const auto parsed = json::parse_yaml_one(*text);
  if (!parsed) return wrong(path, parsed.error().message);
  for (const json::Value& entry : json::array_at(*parsed, "machine-list")) {
    Machine machine{.name = json::text_at(entry, "hostname"),
                    .address = json::text_at(entry, "hostip"),
                    .master = json::string_at(entry, "pai-master") == "true",
                    .gpus = 0,
                    .cpus = size.cpus,
                    .memory = size.memory};
    if (!good_host(machine.name))
      return wrong(path,
                   fmt::format("machine-list: {} is not a host name in lower case",
                               muster::quoted(machine.name)));
    const json::Value& sku =
        json::at(*parsed, "machine-sku", json::string_at(entry, "machine-type"));
    if (const auto cpus = json::int_at(sku, "cpu", "vcore"); cpus > 0) machine.cpus = cpus;
    if (json::at(sku, "mem").is_string()) machine.memory = json::text_at(sku, "mem");
    if (!parse_quantity(machine.memory))
      return wrong(
          path,
          fmt::format("machine-sku: mem {} is not a quantity", muster::quoted(machine.memory)));
    const json::Value& count = json::at(sku, "computing-device", "count");
    if (!machine.master) machine.gpus = count.is_number() ? json::as_int(count) : size.gpus;
    out.machines.push_back(std::move(machine));
  }
  return {};
}

}  // namespace

Result<Layout> read_layout(const std::string& folder, const WorkerSize& size) {
  Layout layout;
  const std::filesystem::path base(folder);
  if (std::filesystem::exists(base / kLayoutFile)) {
    const auto read = read_yaml((base / kLayoutFile).string(), size, layout);
    if (!read) return fail(read.error());
  } else {
    for (const char* name : {"master.csv", "worker.csv"}) {
      if (!std::filesystem::exists(base / name))
        return wrong(
            folder,
            fmt::format("wanted layout.yaml, or master.csv and worker.csv; {} is missing", name));
      const auto read = read_csv((base / name).string(), name[0] == 'm', size, layout);
      if (!read) return fail(read.error());
    }
  }
  std::vector<std::string> names;
  for (const Machine& machine : layout.machines) names.push_back(machine.name);
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end())
    return wrong(folder, fmt::format("machine {} is listed twice", *twice));
  if (std::all_of(layout.machines.begin(), layout.machines.end(), [](const Machine& machine) {
        return machine.master;
      }))
    return wrong(folder, "there is no worker");
  return layout;
}

std::vector<json::Value> nodes_of(const Layout& layout) {
  std::vector<json::Value> nodes;
  for (const Machine& machine : layout.machines) {
    json::Object amounts{{"cpu", std::to_string(machine.cpus)},
                         {"memory", machine.memory},
                         {"pods", "110"},
                         {"nvidia.com/gpu", std::to_string(machine.gpus)}};
    json::Value node =
        json::Object{{"apiVersion", "v1"},
                     {"kind", "Node"},
                     {"metadata",
                      {{"name", machine.name},
                       {"labels", {{machine.master ? "pai-master" : "pai-worker", "true"}}}}},
                     {"spec", json::Object()},
                     {"status", {{"capacity", amounts}, {"allocatable", amounts}}}};
    if (machine.master) json::make(node, {"spec", "unschedulable"}) = true;
    nodes.push_back(std::move(node));
  }
  return nodes;
}

std::string cells_of(const Layout& layout) {
  // Machines that differ cannot be one chain: each size gets its own types. One size, the usual
  // case, has OpenPAI's names.
  struct Size {
    std::int64_t gpus, cpus, memory_mb;
    auto operator<=>(const Size&) const = default;
  };
  std::vector<std::pair<Size, std::vector<std::string>>> sizes;
  for (const Machine& machine : layout.machines) {
    if (machine.master || machine.gpus == 0) continue;
    const auto memory = parse_quantity(machine.memory);
    const Size size{machine.gpus, machine.cpus, memory ? memory->units() / kMebibyte : 0};
    auto found = std::find_if(
        sizes.begin(), sizes.end(), [&](const auto& each) { return each.first == size; });
    if (found == sizes.end()) found = sizes.insert(sizes.end(), {size, {}});
    found->second.push_back(machine.name);
  }
  json::Object skus, types;
  json::Array physical, owned;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto& [size, names] = sizes[i];
    const std::string sku = i == 0 ? "DT" : fmt::format("DT{}", i + 1);
    skus[sku] = json::Object{{"gpu", 1},
                             {"cpu", std::max<std::int64_t>(1, size.cpus / size.gpus)},
                             {"memory", fmt::format("{}Mi", size.memory_mb / size.gpus)}};
    types[sku + "-NODE"] =
        json::Object{{"childCellType", sku}, {"childCellNumber", size.gpus}, {"isNodeLevel", true}};
    types[sku + "-NODE-POOL"] =
        json::Object{{"childCellType", sku + "-NODE"}, {"childCellNumber", names.size()}};
    json::Array children;
    for (const std::string& name : names) children.push_back(json::Object{{"cellAddress", name}});
    physical.push_back(
        json::Object{{"cellType", sku + "-NODE-POOL"}, {"cellChildren", std::move(children)}});
    owned.push_back(json::Object{{"cellType", fmt::format("{0}-NODE-POOL.{0}-NODE", sku)},
                                 {"cellNumber", names.size()}});
  }
  return json::to_yaml(
      json::Object{{"physicalCluster",
                    {{"skuTypes", std::move(skus)},
                     {"cellTypes", std::move(types)},
                     {"physicalCells", std::move(physical)}}},
                   {"virtualClusters", {{"default", {{"virtualCells", std::move(owned)}}}}}});
}

std::string layout_yaml(const Layout& layout) {
  json::Array machines;
  for (const Machine& machine : layout.machines)
    machines.push_back(json::Object{{"hostname", machine.name},
                                    {"hostip", machine.address},
                                    {machine.master ? "pai-master" : "pai-worker", "true"}});
  return json::to_yaml(json::Object{{"machine-list", std::move(machines)}});
}

}  // namespace muster::pai
