#include "net/tls/tls_records.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/result.h"
#include "net/loop/socket.h"

namespace muster::net {
namespace {

unsigned char* bytes_of(char* text) { return reinterpret_cast<unsigned char*>(text); }
const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

/// HKDF-Expand-Label without a context (RFC 8446, 7.1), of at most one digest.
std::string expand(const EVP_MD* digest,
                   const std::string& secret,
                   std::string_view label,
                   std::size_t size) {
  const std::string name = "tls13 " + std::string(label);
  std::string info;
  info += '\0';
  info += static_cast<char>(size);
  info += static_cast<char>(name.size());
  info += name;
  info += '\0';    // no context
  info += '\x01';  // HKDF-Expand's first block
  std::string key(EVP_MAX_MD_SIZE, '\0');
  unsigned made = 0;
  HMAC(digest,
       secret.data(),
       static_cast<int>(secret.size()),
       bytes_of(info),
       info.size(),
       bytes_of(key.data()),
       &made);
  MUSTER_CHECK(made >= size, "a key longer than its digest");
  OPENSSL_cleanse(key.data() + size, key.size() - size);
  key.resize(size);
  return key;
}

}  // namespace

std::unique_ptr<TlsRecords> TlsRecords::make(const SSL* ssl, std::string secret) {
  if (SSL_version(ssl) != TLS1_3_VERSION) return nullptr;
  const SSL_CIPHER* chosen = SSL_get_current_cipher(ssl);
  const int kind = SSL_CIPHER_get_cipher_nid(chosen);
  if (kind != NID_aes_128_gcm && kind != NID_aes_256_gcm) return nullptr;
  // Fetched once: a look-up at every connection takes locks.
  static const EVP_CIPHER* const kAes128 = EVP_CIPHER_fetch(nullptr, "AES-128-GCM", nullptr);
  static const EVP_CIPHER* const kAes256 = EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr);
  const EVP_CIPHER* cipher = kind == NID_aes_128_gcm ? kAes128 : kAes256;
  const EVP_MD* digest = SSL_CIPHER_get_handshake_digest(chosen);
  if (cipher == nullptr || digest == nullptr ||
      secret.size() != static_cast<std::size_t>(EVP_MD_get_size(digest)))
    return nullptr;
  return std::unique_ptr<TlsRecords>(new TlsRecords(cipher, digest, std::move(secret)));
}

TlsRecords::TlsRecords(const EVP_CIPHER* cipher, const EVP_MD* digest, std::string secret)
    : context_(EVP_CIPHER_CTX_new()), cipher_(cipher), digest_(digest), secret_(std::move(secret)) {
  MUSTER_CHECK(context_ != nullptr, "no memory for a TLS connection");
  use_secret();
}

TlsRecords::~TlsRecords() {
  EVP_CIPHER_CTX_free(context_);
  OPENSSL_cleanse(secret_.data(), secret_.size());
}

void TlsRecords::use_secret() {
  std::string key =
      expand(digest_, secret_, "key", static_cast<std::size_t>(EVP_CIPHER_get_key_length(cipher_)));
  const std::string nonce = expand(digest_, secret_, "iv", nonce_.size());
  nonce.copy(reinterpret_cast<char*>(nonce_.data()), nonce_.size());
  sequence_ = 0;
  const int done =
      EVP_EncryptInit_ex(context_, cipher_, nullptr, bytes_of(key.data()), nonce_.data());
  MUSTER_CHECK(done == 1, "OpenSSL refuses a key of its own making");
  OPENSSL_cleanse(key.data(), key.size());
}

void TlsRecords::update_key() {
  std::string next = expand(digest_, secret_, "traffic upd", secret_.size());
  OPENSSL_cleanse(secret_.data(), secret_.size());
  secret_ = std::move(next);
  use_secret();
}

void TlsRecords::expect() const {
  const auto* context = reinterpret_cast<const char*>(context_);
  for (std::size_t line = 0; line < 3; ++line) fetch(context + line * 64);
}

std::size_t TlsRecords::seal(std::uint8_t type, std::string_view text, char* record) {
  auto nonce = nonce_;
  for (std::size_t i = 0; i < 8; ++i)
    nonce[nonce.size() - 1 - i] ^= static_cast<unsigned char>(sequence_ >> (8 * i));
  ++sequence_;

  unsigned char* const head = bytes_of(record);
  const std::size_t inside = text.size() + kTailBytes;
  head[0] = SSL3_RT_APPLICATION_DATA;
  head[1] = 3;
  head[2] = 3;
  head[3] = static_cast<unsigned char>(inside >> 8);
  head[4] = static_cast<unsigned char>(inside & 255);

  unsigned char* const body = head + kHeadBytes;
  const int size = static_cast<int>(text.size());
  int written = 0;
  bool good = EVP_EncryptInit_ex(context_, nullptr, nullptr, nullptr, nonce.data()) == 1;
  good = good && EVP_EncryptUpdate(context_, nullptr, &written, head, kHeadBytes) == 1;
  if (bytes_of(text) == body) {
    body[size] = type;
    good = good && EVP_EncryptUpdate(context_, body, &written, body, size + 1) == 1;
  } else {
    good = good && EVP_EncryptUpdate(context_, body, &written, bytes_of(text), size) == 1;
    good = good && EVP_EncryptUpdate(context_, body + size, &written, &type, 1) == 1;
  }
  unsigned char* const tag = body + size + 1;
  good = good && EVP_EncryptFinal_ex(context_, tag, &written) == 1;
  good = good && EVP_CIPHER_CTX_ctrl(context_, EVP_CTRL_AEAD_GET_TAG, 16, tag) == 1;
  MUSTER_CHECK(good, "OpenSSL cannot encrypt a record");
  return kHeadBytes + inside;
}

}  // namespace muster::net
