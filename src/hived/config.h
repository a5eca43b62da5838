/// HiveD's configuration file, unchanged: YAML text in, a pure cells::Config and the process
/// settings out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/model/cell_config.h"

namespace muster::hived {

struct SkuType {
  std::string name;
  std::int64_t gpu = 0;
  std::int64_t cpu = 0;
  std::string memory;
};

struct Config {
  engine::cells::Config cells;
  std::vector<SkuType> sku_types;  // not used in decisions; OpenPAI sizes containers with it
  std::string kube_apiserver_address;
  std::string kube_config_file;
  std::string web_server_address = ":9096";
  std::int32_t force_pod_bind_threshold = 3;
  std::int64_t waiting_pod_block_ms = 0;
  std::vector<std::string> warnings;
};

/// Reads and types the file; an error begins with "line N: " and says what was found and what would
/// be right. What the cells mean together (types, addresses, who owns what) is checked by
/// CellAllocator::create.
Result<Config> parse_config(std::string_view yaml);

}  // namespace muster::hived
