/// What an image says about itself, as containerd tells it: its layers' chain and how its program
/// is started. Pure.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace muster::agent::image {

struct ImageConfig {
  std::string chain_id;  // of all its layers; empty: it has none
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> env;
  std::string working_dir;
  std::string user;  // "", "1000", "nobody", "1000:100", "nobody:users"
};

/// From the JSON that ImageStatus gives under "info" when asked to be verbose.
Result<ImageConfig> parse_image_info(std::string_view text);

}  // namespace muster::agent::image
