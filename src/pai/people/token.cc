#include "pai/people/token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/strings.h"

namespace muster::pai {
namespace {

std::string hmac(std::string_view key, std::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(),
       key.data(),
       static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()),
       text.size(),
       digest,
       &size);
  return {reinterpret_cast<const char*>(digest), size};
}

tl::unexpected<Error> invalid() { return fail(Code::kUnauthorized, "Your token is invalid."); }

/// "header.payload.signature"
struct Parts {
  std::string_view header, payload, signature, signed_text;
};

Result<Parts> cut(std::string_view token) {
  const std::size_t first = token.find('.');
  const std::size_t second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (second == std::string_view::npos || token.find('.', second + 1) != std::string_view::npos)
    return invalid();
  return Parts{token.substr(0, first),
               token.substr(first + 1, second - first - 1),
               token.substr(second + 1),
               token.substr(0, second)};
}

Result<TokenClaims> claims_of(const Parts& parts) {
  const auto payload = base64url_decode(parts.payload);
  if (!payload) return invalid();
  const auto value = json::parse(*payload);
  if (!value || !json::at(*value, "username").is_string()) return invalid();
  TokenClaims claims;
  claims.user = json::text_at(*value, "username");
  claims.application = json::bool_at(*value, "application");
  claims.issued_s = json::int_at(*value, "iat");
  claims.expires_s = json::int_at(*value, "exp");
  claims.id = json::text_at(*value, "jti");
  return claims;
}

}  // namespace

json::Object claims_json(const TokenClaims& claims) {
  json::Object payload{{"username", claims.user}, {"application", claims.application}};
  if (!claims.id.empty()) payload["jti"] = claims.id;
  payload["iat"] = claims.issued_s;
  if (claims.expires_s != 0) payload["exp"] = claims.expires_s;
  return payload;
}

std::string make_token(std::string_view key, const TokenClaims& claims) {
  std::string text = base64url_encode(R"({"alg":"HS256","typ":"JWT"})") + "." +
                     base64url_encode(json::dump(claims_json(claims)));
  return text + "." + base64url_encode(hmac(key, text));
}

Result<TokenClaims> read_token(std::string_view key, std::string_view token) {
  const auto parts = cut(token);
  if (!parts) return fail(parts.error());
  const auto header = base64url_decode(parts->header);
  const auto signature = base64url_decode(parts->signature);
  if (!header || !signature) return invalid();
  const auto head = json::parse(*header);
  // The algorithm is ours to choose: a token that names another was not made here.
  if (!head || json::string_at(*head, "alg") != "HS256") return invalid();
  const std::string made = hmac(key, parts->signed_text);
  if (made.size() != signature->size() ||
      CRYPTO_memcmp(made.data(), signature->data(), made.size()) != 0)
    return invalid();
  return claims_of(*parts);
}

Result<TokenClaims> read_unsigned(std::string_view token) {
  const auto parts = cut(token);
  if (!parts) return fail(parts.error());
  return claims_of(*parts);
}

}  // namespace muster::pai
