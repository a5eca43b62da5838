/// The machines of an OpenPAI deployment: the files that its installer reads (master.csv, worker.csv
/// and config.yaml until 1.4, layout.yaml and config.yaml since 1.5) as nodes, the HiveD configuration
/// that the installer makes of them, and the words it ends with. Pure but for reading the files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "json/json.h"

namespace muster::pai {

struct Machine {
  std::string name, address;
  bool master = false;
  std::int64_t gpus = 0;
  std::int64_t cpus = 0;
  std::string memory;  // a quantity
};

struct Layout {
  std::vector<Machine> machines;
};

/// What a worker of a csv file has; such a file does not say.
struct WorkerSize {
  std::int64_t gpus = 1;
  std::int64_t cpus = 4;
  std::string memory = "8Gi";
};

/// Errors name the file and what is missing in it.
Result<Layout> read_layout(const std::string& folder, const WorkerSize& size);

/// Node objects; masters take no jobs.
std::vector<json::Value> nodes_of(const Layout& layout);
/// One sku type DT for each GPU, and one virtual cluster, default, that owns all workers.
std::string cells_of(const Layout& layout);
/// layout.yaml as `paictl config pull` writes it.
std::string layout_yaml(const Layout& layout);

}  // namespace muster::pai
