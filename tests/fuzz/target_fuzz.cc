/// Any request target: parsed to something sane, or refused.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "net/http/http.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto target =
      muster::net::parse_target(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!target) return 0;
  for (const auto& segment : target->segments) {
    if (segment.empty() || segment == "." || segment == ".." ||
        segment.find('/') != std::string::npos)
      std::abort();
    if (segment.find('\0') != std::string::npos) std::abort();
  }
  if (target->path.empty() || target->path.front() != '/') std::abort();
  return 0;
}
