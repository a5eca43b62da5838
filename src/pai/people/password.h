/// Passwords as they are kept: argon2id in its usual text form for ours, and OpenPAI's own
/// (PBKDF2-HMAC-SHA512, salt = hex MD5 of the user's name, 10,000 rounds, 64 bytes, in hex), which
/// are checked so that its users can be taken over.
///
/// Both take tens of milliseconds on purpose: never on the loop, always through Hashing.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::pai {

inline constexpr std::size_t kPasswordMin = 6;
/// Longer ones cost whoever checks them, and nobody types them.
inline constexpr std::size_t kPasswordMax = 1024;

/// `salt`: 16 random bytes.
Result<std::string> hash_password(std::string_view password, std::string_view salt);
/// As OpenPAI would keep it.
std::string openpai_hash(std::string_view user, std::string_view password);

/// Whether `stored` is of this password. Anything that is neither form never is.
bool verify_password(std::string_view stored, std::string_view user, std::string_view password);
/// OpenPAI's form: to be replaced when its owner next logs in.
bool is_openpai_hash(std::string_view stored);

/// 20 letters and digits without those that look alike; `random`: 20 or more random bytes.
std::string readable_password(std::string_view random);

}  // namespace muster::pai
