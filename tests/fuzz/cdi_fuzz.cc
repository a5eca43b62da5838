/// A description of devices: it is refused, or every path in it is absolute and leads nowhere else.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "agent/node/cdi.h"

using namespace muster::agent;

namespace {

bool sound(const std::string& path) {
  return path.starts_with('/') && (path + "/").find("/../") == std::string::npos;
}

void check(const cdi::Edits& edits) {
  for (const auto& node : edits.nodes) {
    if (!sound(node.path) || !node.path.starts_with("/dev/") || !sound(node.host_path))
      std::abort();
  }
  for (const auto& mount : edits.mounts) {
    if (!sound(mount.host_path) || !sound(mount.container_path)) std::abort();
  }
  for (const auto& item : edits.env) {
    if (item.find('=') == std::string::npos) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto spec = cdi::parse({reinterpret_cast<const char*>(data), size});
  if (!spec) return 0;
  check(spec->edits);
  for (const auto& [name, edits] : spec->devices) check(edits);
  return 0;
}
