#include "pai/people/password.h"

#include <argon2.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>

#include "pai/people/hex.h"

namespace muster::pai {
namespace {

// The least that OWASP's password storage sheet recommends for argon2id: 19 MiB, two passes, one
// lane. With two at once that is 38 MiB.
constexpr std::uint32_t kMemoryKib = 19 * 1024;
constexpr std::uint32_t kPasses = 2;
constexpr std::uint32_t kLanes = 1;
constexpr std::size_t kHashBytes = 32;

constexpr int kOpenpaiRounds = 10'000;
constexpr std::size_t kOpenpaiBytes = 64;

std::string md5_hex(std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), digest, &size, EVP_md5(), nullptr);
  return hex({reinterpret_cast<const char*>(digest), size});
}

}  // namespace

Result<std::string> hash_password(std::string_view password, std::string_view salt) {
  std::string text(argon2_encodedlen(kPasses,
                                     kMemoryKib,
                                     kLanes,
                                     static_cast<std::uint32_t>(salt.size()),
                                     kHashBytes,
                                     Argon2_id),
                   '\0');
  const int code = argon2id_hash_encoded(kPasses,
                                         kMemoryKib,
                                         kLanes,
                                         password.data(),
                                         password.size(),
                                         salt.data(),
                                         salt.size(),
                                         kHashBytes,
                                         text.data(),
                                         text.size());
  if (code != ARGON2_OK)
    return fail(Code::kInternal,
                std::string("the password could not be hashed: ") + argon2_error_message(code));
  text.resize(text.find('\0'));
  return text;
}

std::string openpai_hash(std::string_view user, std::string_view password) {
  const std::string salt = md5_hex(user);
  unsigned char key[kOpenpaiBytes];
  PKCS5_PBKDF2_HMAC(password.data(),
                    static_cast<int>(password.size()),
                    reinterpret_cast<const unsigned char*>(salt.data()),
                    static_cast<int>(salt.size()),
                    kOpenpaiRounds,
                    EVP_sha512(),
                    kOpenpaiBytes,
                    key);
  return hex({reinterpret_cast<const char*>(key), kOpenpaiBytes});
}

bool is_openpai_hash(std::string_view stored) {
  return stored.size() == 2 * kOpenpaiBytes && unhex(stored).has_value();
}

bool verify_password(std::string_view stored, std::string_view user, std::string_view password) {
  if (is_openpai_hash(stored)) {
    const std::string made = openpai_hash(user, password);
    return CRYPTO_memcmp(made.data(), stored.data(), made.size()) == 0;
  }
  if (!stored.starts_with("$argon2id$")) return false;
  // A hash that asks for more than we ever write would let whoever can store one take the machine's
  // memory.
  const std::string text(stored);
  std::uint32_t memory = 0, passes = 0;
  if (std::sscanf(text.c_str(), "$argon2id$v=19$m=%u,t=%u", &memory, &passes) != 2 ||
      memory > 4 * kMemoryKib || passes > 8)
    return false;
  return argon2id_verify(text.c_str(), password.data(), password.size()) == ARGON2_OK;
}

std::string readable_password(std::string_view random) {
  static constexpr std::string_view kLetters = "abcdefghjkmnpqrstuvwxyz23456789";
  std::string out;
  for (std::size_t i = 0; i < std::min<std::size_t>(random.size(), 20); ++i)
    out += kLetters[static_cast<unsigned char>(random[i]) % kLetters.size()];
  return out;
}

}  // namespace muster::pai
