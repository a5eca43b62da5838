/// An audit policy: it is refused, or it judges any request.
#include <cstdint>
#include <string_view>

#include "apiserver/audit/policy.h"

using namespace muster::apiserver::audit;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto policy = parse_policy({reinterpret_cast<const char*>(data), size});
  if (!policy) return 0;
  (void)policy->judge({.verb = "get", .resource = "pods", .subresource = "log", .ns = "default"});
  (void)policy->judge({.verb = "get", .path = "/api"});
  return 0;
}
