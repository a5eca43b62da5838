/// OpenPAI's tokens: JSON web tokens signed with one key (HS256) that carry {username, application}.
/// A token that is signed well is not yet good: it counts only while its user's Secret lists it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "json/json.h"

namespace muster::pai {

struct TokenClaims {
  std::string user;
  bool application = false;
  std::int64_t issued_s = 0;
  std::int64_t expires_s = 0;  // 0: never
  std::string id;              // makes two of the same second differ
};

std::string make_token(std::string_view key, const TokenClaims& claims);
/// Unauthorized unless `key` signed it; expiry is the caller's to look at.
Result<TokenClaims> read_token(std::string_view key, std::string_view token);
/// What a token says of itself, whoever signed it.
Result<TokenClaims> read_unsigned(std::string_view token);
/// The payload as clients see it.
json::Object claims_json(const TokenClaims& claims);

}  // namespace muster::pai
