/// YAML in: documents or an error; what was read can be written and read again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "json/json.h"

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto documents =
      json::parse_yaml(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!documents) return 0;
  for (const json::Value& document : *documents) (void)json::to_yaml(document);
  return 0;
}
