/// A pod's DNS query: answered, passed on or dropped. An answer never exceeds what fits into a
/// packet.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "agent/network/dns.h"

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view query(reinterpret_cast<const char*>(data), size);
  const auto resolve = [](const std::string& name) -> std::optional<std::vector<std::string>> {
    if (name.size() % 2 == 0) return std::nullopt;
    return std::vector<std::string>(name.size(), "10.0.0.1");
  };
  const std::string answer = agent::answer_query(query, resolve);
  if (!answer.empty() && (answer.size() < 12 || answer.size() > 512 + 300)) std::abort();
  (void)agent::asks_elsewhere(query);
  return 0;
}
