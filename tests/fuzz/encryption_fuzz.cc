/// A file of keys, and behind the first empty line a stored value: both are read or refused.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "apiserver/encryption/keys.h"

using namespace muster::apiserver;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto gap = std::min(text.find("\n\n"), text.size());
  const auto keys = encryption::parse_keys(text.substr(0, gap));
  if (!keys) return 0;
  const std::string_view stored = text.substr(std::min(gap + 2, text.size()));
  (void)encryption::decrypt(*keys, "/secrets/a/b", stored);
  const auto sealed = encryption::encrypt(*keys, "/secrets/a/b", stored);
  if (!sealed || !encryption::is_current(*keys, *sealed)) std::abort();
  const auto again = encryption::decrypt(*keys, "/secrets/a/b", *sealed);
  if (!again || *again != stored) std::abort();
  return 0;
}
