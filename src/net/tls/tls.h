/// Certificates and tokens: a CA of one's own, certificates it signs, and JSON web tokens (ES256).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace muster::net {

struct KeyPair {
  std::string certificate_pem;
  std::string key_pem;
};

/// EC P-256, ten years.
Result<KeyPair> make_ca(std::string common_name, Time now);

struct CertificateRequest {
  std::string common_name;
  std::vector<std::string> organizations;
  std::vector<std::string> dns_names;
  std::vector<std::string> addresses;
  bool server = false;
  Duration lifetime = std::chrono::hours(24 * 365);
};
Result<KeyPair> make_certificate(const KeyPair& ca, CertificateRequest request, Time now);

/// A new EC P-256 private key in PEM.
Result<std::string> make_signing_key();
/// Compact JWS over a JSON payload, ES256.
Result<std::string> sign_token(std::string_view key_pem, std::string_view payload_json);
/// The payload if the signature holds; expiry is the caller's to check.
Result<std::string> verify_token(std::string_view key_pem, std::string_view token);

std::string random_bytes(std::size_t count);
std::string random_uuid();
std::string sha256(std::string_view bytes);

}  // namespace muster::net
