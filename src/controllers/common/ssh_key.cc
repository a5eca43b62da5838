#include "controllers/common/ssh_key.h"

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <memory>
#include <vector>

#include "base/strings.h"

namespace muster::controllers {
namespace {

/// SSH's wire form of a string: length in four bytes, then the bytes.
void append(std::string& out, std::string_view bytes) {
  const auto size = static_cast<std::uint32_t>(bytes.size());
  for (int shift = 24; shift >= 0; shift -= 8)
    out.push_back(static_cast<char>((size >> shift) & 0xff));
  out.append(bytes);
}

}  // namespace

Result<SshKey> make_ssh_key() {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-521"),
                                                                &EVP_PKEY_free);
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), &BIO_free);
  if (!key || !bio ||
      PEM_write_bio_PrivateKey_traditional(
          bio.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return fail(Code::kInternal, "making an ECDSA P-521 key failed");
  }
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  SshKey result;
  result.private_pem.assign(data, static_cast<std::size_t>(size));
  std::vector<unsigned char> point(256);
  std::size_t length = 0;
  if (EVP_PKEY_get_octet_string_param(
          key.get(), OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY, point.data(), point.size(), &length) !=
      1) {
    return fail(Code::kInternal, "reading the public half of an ECDSA key failed");
  }
  std::string blob;
  append(blob, "ecdsa-sha2-nistp521");
  append(blob, "nistp521");
  append(blob, std::string_view(reinterpret_cast<const char*>(point.data()), length));
  result.public_line = "ecdsa-sha2-nistp521 " + base64_encode(blob) + "\n";
  return result;
}

}  // namespace muster::controllers
