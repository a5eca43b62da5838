/// The sending half of a TLS 1.3 connection after its handshake: text in, protected records out
/// (RFC 8446, 5.2).
///
/// OpenSSL's own way to a record goes through a few dozen places in memory. With a thousand
/// watchers, none of whose connections is in a cache when something changes, looking these up takes
/// longer than the encryption. Here a connection's state is a key, a nonce and a counter. The
/// handshake, everything that is read, and older protocols stay with OpenSSL. Seen by net's own .cc
/// files only.
#pragma once

#include <openssl/ssl.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace muster::net {

class TlsRecords {
 public:
  static constexpr std::size_t kHeadBytes = 5;
  static constexpr std::size_t kTailBytes = 1 + 16;  // the type inside, and the tag

  /// From the first application traffic secret of the sending side, none of whose records is made
  /// yet. Null when the handshake agreed on something else than TLS 1.3 with AES-GCM.
  static std::unique_ptr<TlsRecords> make(const SSL* ssl, std::string secret);
  ~TlsRecords();
  TlsRecords(const TlsRecords&) = delete;

  /// One record of a content type (SSL3_RT_…) with at most 16 KiB of text. `record` has room for
  /// head, text and tail; the text may lie where the record's text goes already. Returns the
  /// record's size. It must be sent, before any that is made later.
  std::size_t seal(std::uint8_t type, std::string_view text, char* record);
  /// seal() comes soon.
  void expect() const;
  /// The next key (7.2); after a KeyUpdate has been sealed.
  void update_key();

 private:
  TlsRecords(const EVP_CIPHER* cipher, const EVP_MD* digest, std::string secret);
  void use_secret();

  std::uint64_t sequence_ = 0;  // counts records of this key
  std::array<unsigned char, 12> nonce_{};
  EVP_CIPHER_CTX* context_;
  const EVP_CIPHER* cipher_;
  const EVP_MD* digest_;
  std::string secret_;
};

}  // namespace muster::net
