#include "net/tls/seal.h"

#include <openssl/evp.h>

#include <memory>

#include "net/tls/tls.h"

namespace muster::net {
namespace {

constexpr std::size_t kNonce = 12, kTag = 16;

struct Free {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_CIPHER_CTX, Free>;

const unsigned char* in(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* out(std::string& text, std::size_t from = 0) {
  return reinterpret_cast<unsigned char*>(text.data()) + from;
}

}  // namespace

Result<std::string> seal(std::string_view key, std::string_view plain, std::string_view bound) {
  MUSTER_CHECK(key.size() == kSealKeyBytes, "a key of another length");
  const std::string nonce = random_bytes(kNonce);
  std::string sealed = nonce + std::string(plain.size() + kTag, '\0');
  const Context context(EVP_CIPHER_CTX_new());
  int done = 0;
  const bool good =
      context &&
      EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, in(key), in(nonce)) == 1 &&
      EVP_EncryptUpdate(context.get(), nullptr, &done, in(bound), static_cast<int>(bound.size())) ==
          1 &&
      EVP_EncryptUpdate(
          context.get(), out(sealed, kNonce), &done, in(plain), static_cast<int>(plain.size())) ==
          1 &&
      EVP_EncryptFinal_ex(context.get(), out(sealed, kNonce + plain.size()), &done) == 1 &&
      EVP_CIPHER_CTX_ctrl(
          context.get(), EVP_CTRL_GCM_GET_TAG, kTag, out(sealed, kNonce + plain.size())) == 1;
  if (!good) return fail(Code::kInternal, "cannot encrypt");
  return sealed;
}

Result<std::string> unseal(std::string_view key, std::string_view sealed, std::string_view bound) {
  MUSTER_CHECK(key.size() == kSealKeyBytes, "a key of another length");
  if (sealed.size() < kNonce + kTag) return fail(Code::kInternal, "it is too short");
  const std::size_t size = sealed.size() - kNonce - kTag;
  std::string plain(size, '\0'), tag(sealed.substr(kNonce + size));
  const Context context(EVP_CIPHER_CTX_new());
  int done = 0;
  const bool good =
      context &&
      EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, in(key), in(sealed)) == 1 &&
      EVP_DecryptUpdate(context.get(), nullptr, &done, in(bound), static_cast<int>(bound.size())) ==
          1 &&
      EVP_DecryptUpdate(
          context.get(), out(plain), &done, in(sealed.substr(kNonce)), static_cast<int>(size)) ==
          1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTag, out(tag)) == 1 &&
      EVP_DecryptFinal_ex(context.get(), out(plain, size), &done) == 1;
  if (!good)
    return fail(Code::kInternal, "it was made with another key or for another place, or changed");
  return plain;
}

}  // namespace muster::net
