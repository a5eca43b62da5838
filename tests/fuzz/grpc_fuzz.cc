/// What a gRPC server sends: bodies and trailers. A message that is read is the one that was framed.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "net/http2/grpc.h"

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto message = net::grpc_unframe(bytes);
  if (message && net::grpc_frame(*message) != bytes) std::abort();
  if (size > 0 && net::grpc_error(data[0], bytes.substr(1)).message.empty()) std::abort();
  return 0;
}
