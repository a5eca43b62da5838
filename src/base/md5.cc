#include "base/md5.h"

#include <fmt/core.h>
#include <openssl/evp.h>

#include "base/result.h"

namespace muster {

std::string md5_hex(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  const int done = EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_md5(), nullptr);
  MUSTER_CHECK(done == 1, "OpenSSL has no MD5");
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

}  // namespace muster
