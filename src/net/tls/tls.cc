#include "net/tls/tls.h"

#include <fmt/core.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>

#include <memory>

#include "base/strings.h"

namespace muster::net {
namespace {

template <auto Free>
struct Deleter {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using Bio = std::unique_ptr<BIO, Deleter<BIO_free_all>>;
using Digest = std::unique_ptr<EVP_MD_CTX, Deleter<EVP_MD_CTX_free>>;
using Signature = std::unique_ptr<ECDSA_SIG, Deleter<ECDSA_SIG_free>>;

/// Of P-256: a JOSE signature is R and S, each this long.
constexpr std::size_t kCoordinateBytes = 32;
constexpr auto kClockSkew = std::chrono::minutes(5);
constexpr auto kCaLifetime = std::chrono::hours(24 * 3650);

tl::unexpected<Error> openssl_failed(std::string_view what) {
  const auto code = ERR_peek_last_error();
  char text[256] = "unknown error";
  if (code != 0) ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return fail(Code::kInternal, fmt::format("{}: {}", what, text));
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const auto length = BIO_get_mem_data(bio, &data);
  return std::string(data, static_cast<std::size_t>(length));
}

Bio memory(std::string_view text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Result<std::string> key_pem(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return openssl_failed("write a key");
  return text_of(bio.get());
}

Result<Key> read_key(std::string_view pem) {
  const auto bio = memory(pem);
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  if (!key) {
    ERR_clear_error();
    return fail(Code::kInvalid, "private key is not readable PEM");
  }
  return key;
}

Result<KeyPair> finish(X509* certificate, EVP_PKEY* own_key, EVP_PKEY* signer) {
  if (X509_sign(certificate, signer, EVP_sha256()) == 0)
    return openssl_failed("sign a certificate");
  const Bio bio(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(bio.get(), certificate) != 1) return openssl_failed("write a certificate");
  auto key = key_pem(own_key);
  if (!key) return tl::unexpected(std::move(key.error()));
  return KeyPair{text_of(bio.get()), std::move(*key)};
}

bool add_name(X509_NAME* name, const char* field, const std::string& value) {
  return X509_NAME_add_entry_by_txt(name,
                                    field,
                                    MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(value.data()),
                                    static_cast<int>(value.size()),
                                    -1,
                                    0) == 1;
}

bool add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  auto* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  if (extension == nullptr) return false;
  const bool added = X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

/// Version, random serial, validity, key. A little backdated, so that clocks may differ.
Result<Certificate> blank(EVP_PKEY* key, Time now, Duration lifetime) {
  Certificate certificate(X509_new());
  if (!certificate) return openssl_failed("make a certificate");
  X509_set_version(certificate.get(), 2);
  unsigned char serial[16];
  if (RAND_bytes(serial, sizeof serial) != 1) return openssl_failed("draw a serial number");
  serial[0] &= 0x7f;
  serial[0] |= 0x40;
  auto* number = BN_bin2bn(serial, sizeof serial, nullptr);
  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate.get()));
  BN_free(number);
  ASN1_TIME_set(X509_getm_notBefore(certificate.get()), (now - kClockSkew).seconds());
  ASN1_TIME_set(X509_getm_notAfter(certificate.get()), (now + lifetime).seconds());
  if (X509_set_pubkey(certificate.get(), key) != 1)
    return openssl_failed("set a certificate's key");
  return certificate;
}

Result<Certificate> read_certificate(std::string_view pem) {
  const auto bio = memory(pem);
  Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (!certificate) {
    ERR_clear_error();
    return fail(Code::kInvalid, "certificate is not readable PEM");
  }
  return certificate;
}

/// Names with a comma or a line break could smuggle in another entry.
bool is_plain_name(const std::string& text) {
  return !text.empty() && text.find_first_of(std::string_view(",\r\n\0", 4)) == std::string::npos;
}

}  // namespace

Result<KeyPair> make_ca(std::string common_name, Time now) {
  const Key key(EVP_EC_gen("P-256"));
  if (!key) return openssl_failed("make a key");
  auto certificate = blank(key.get(), now, kCaLifetime);
  if (!certificate) return tl::unexpected(std::move(certificate.error()));
  auto* x = certificate->get();
  auto* name = X509_get_subject_name(x);
  const bool ok =
      add_name(name, "CN", common_name) && X509_set_issuer_name(x, name) == 1 &&
      add_extension(x, x, NID_basic_constraints, "critical,CA:TRUE") &&
      add_extension(x, x, NID_key_usage, "critical,digitalSignature,keyCertSign,cRLSign") &&
      add_extension(x, x, NID_subject_key_identifier, "hash");
  if (!ok) return openssl_failed("describe a CA");
  return finish(x, key.get(), key.get());
}

Result<KeyPair> make_certificate(const KeyPair& ca, CertificateRequest request, Time now) {
  auto ca_certificate = read_certificate(ca.certificate_pem);
  if (!ca_certificate) return tl::unexpected(std::move(ca_certificate.error()));
  auto ca_key = read_key(ca.key_pem);
  if (!ca_key) return tl::unexpected(std::move(ca_key.error()));
  const Key key(EVP_EC_gen("P-256"));
  if (!key) return openssl_failed("make a key");
  auto certificate = blank(key.get(), now, request.lifetime);
  if (!certificate) return tl::unexpected(std::move(certificate.error()));
  auto* x = certificate->get();
  auto* issuer = ca_certificate->get();

  auto* name = X509_get_subject_name(x);
  bool ok = X509_set_issuer_name(x, X509_get_subject_name(issuer)) == 1;
  for (const auto& organization : request.organizations)
    ok = ok && add_name(name, "O", organization);
  ok = ok && add_name(name, "CN", request.common_name) &&
       add_extension(x, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
       add_extension(x, issuer, NID_key_usage, "critical,digitalSignature") &&
       add_extension(
           x, issuer, NID_ext_key_usage, request.server ? "serverAuth,clientAuth" : "clientAuth") &&
       // Told apart by their keys, a certificate that bears its CA's very name does not look
       // self-signed.
       add_extension(x, issuer, NID_subject_key_identifier, "hash") &&
       add_extension(x, issuer, NID_authority_key_identifier, "keyid");
  if (!ok)
    return openssl_failed(fmt::format("describe a certificate for \"{}\"", request.common_name));

  std::vector<std::string> names;
  for (const auto& dns : request.dns_names) {
    if (!is_plain_name(dns))
      return fail(Code::kInvalid,
                  fmt::format("DNS name {} of a certificate is not valid", quoted(dns)));
    names.push_back("DNS:" + dns);
  }
  for (const auto& address : request.addresses) {
    if (!is_plain_name(address))
      return fail(Code::kInvalid,
                  fmt::format("address {} of a certificate is not valid", quoted(address)));
    names.push_back("IP:" + address);
  }
  if (!names.empty() && !add_extension(x, issuer, NID_subject_alt_name, join(names, ","))) {
    ERR_clear_error();
    return fail(Code::kInvalid,
                fmt::format("certificate names \"{}\" are not valid", join(names, ",")));
  }
  return finish(x, key.get(), ca_key->get());
}

Result<std::string> make_signing_key() {
  const Key key(EVP_EC_gen("P-256"));
  if (!key) return openssl_failed("make a key");
  return key_pem(key.get());
}

namespace {

/// Tokens are signed and checked with one and the same key, and reading that takes ten times as
/// long as a signature.
Result<EVP_PKEY*> token_key(std::string_view pem) {
  thread_local std::string text;
  thread_local Key key;
  if (!key || text != pem) {
    auto read = read_key(pem);
    if (!read) return tl::unexpected(std::move(read.error()));
    key = std::move(*read);
    text = pem;
  }
  return key.get();
}

}  // namespace

Result<std::string> sign_token(std::string_view pem, std::string_view payload_json) {
  const auto key = token_key(pem);
  if (!key) return tl::unexpected(key.error());
  auto text =
      base64url_encode(R"({"alg":"ES256","typ":"JWT"})") + "." + base64url_encode(payload_json);
  const Digest digest(EVP_MD_CTX_new());
  std::size_t length = 0;
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  if (EVP_DigestSignInit(digest.get(), nullptr, EVP_sha256(), nullptr, *key) != 1 ||
      EVP_DigestSign(digest.get(), nullptr, &length, bytes, text.size()) != 1) {
    return openssl_failed("sign a token");
  }
  std::string der(length, '\0');
  if (EVP_DigestSign(digest.get(),
                     reinterpret_cast<unsigned char*>(der.data()),
                     &length,
                     bytes,
                     text.size()) != 1) {
    return openssl_failed("sign a token");
  }
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  const Signature signature(d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(length)));
  if (!signature) return openssl_failed("sign a token");
  std::string raw(2 * kCoordinateBytes, '\0');
  auto* out = reinterpret_cast<unsigned char*>(raw.data());
  BN_bn2binpad(ECDSA_SIG_get0_r(signature.get()), out, kCoordinateBytes);
  BN_bn2binpad(ECDSA_SIG_get0_s(signature.get()), out + kCoordinateBytes, kCoordinateBytes);
  return text + "." + base64url_encode(raw);
}

Result<std::string> verify_token(std::string_view pem, std::string_view token) {
  const auto refused = [](std::string_view why) {
    return fail(Code::kUnauthorized, fmt::format("token: {}", why));
  };
  const auto key = token_key(pem);
  if (!key) return tl::unexpected(key.error());
  const auto last = token.rfind('.');
  const auto first = token.find('.');
  if (first == std::string_view::npos || first == last)
    return refused("wanted three parts separated by dots");
  const auto header = base64url_decode(token.substr(0, first));
  const auto payload = base64url_decode(token.substr(first + 1, last - first - 1));
  const auto raw = base64url_decode(token.substr(last + 1));
  if (!header || !payload || !raw) return refused("not base64url");
  // Only what sign_token writes is accepted, so "alg": "none" and its kin never reach a decision.
  if (*header != R"({"alg":"ES256","typ":"JWT"})")
    return refused("wanted the header of an ES256 token of this cluster");
  if (raw->size() != 2 * kCoordinateBytes) return refused("signature has the wrong length");
  const auto* bytes = reinterpret_cast<const unsigned char*>(raw->data());
  const Signature signature(ECDSA_SIG_new());
  ECDSA_SIG_set0(signature.get(),
                 BN_bin2bn(bytes, kCoordinateBytes, nullptr),
                 BN_bin2bn(bytes + kCoordinateBytes, kCoordinateBytes, nullptr));
  unsigned char* der = nullptr;
  const int length = i2d_ECDSA_SIG(signature.get(), &der);
  if (length <= 0) return refused("signature does not hold");
  const Digest digest(EVP_MD_CTX_new());
  const auto signed_text = token.substr(0, last);
  const bool ok = EVP_DigestVerifyInit(digest.get(), nullptr, EVP_sha256(), nullptr, *key) == 1 &&
                  EVP_DigestVerify(digest.get(),
                                   der,
                                   static_cast<std::size_t>(length),
                                   reinterpret_cast<const unsigned char*>(signed_text.data()),
                                   signed_text.size()) == 1;
  OPENSSL_free(der);
  ERR_clear_error();
  if (!ok) return refused("signature does not hold");
  return *payload;
}

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  MUSTER_CHECK(
      RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(count)) == 1,
      "no random bytes");
  return bytes;
}

std::string random_uuid() {
  // Drawn a block at a time: a draw costs more than the uuid.
  constexpr std::size_t kBytes = 16, kBlock = 64 * kBytes;
  static thread_local std::string block;
  if (block.empty()) block = random_bytes(kBlock);
  char* b = block.data() + block.size() - kBytes;
  b[6] = static_cast<char>((b[6] & 0x0f) | 0x40);
  b[8] = static_cast<char>((b[8] & 0x3f) | 0x80);
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out(36, '-');
  std::size_t at = 0;
  for (std::size_t i = 0; i < kBytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) ++at;
    out[at++] = kHex[static_cast<unsigned char>(b[i]) >> 4];
    out[at++] = kHex[static_cast<unsigned char>(b[i]) & 15];
  }
  block.resize(block.size() - kBytes);
  return out;
}

std::string sha256(std::string_view bytes) {
  std::string digest(SHA256_DIGEST_LENGTH, '\0');
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()),
         bytes.size(),
         reinterpret_cast<unsigned char*>(digest.data()));
  return digest;
}

}  // namespace muster::net
