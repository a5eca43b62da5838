/// Bytes that only who has the key can read or change: AES-256-GCM.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::net {

inline constexpr std::size_t kSealKeyBytes = 32;

/// A fresh nonce, the encrypted bytes and a tag over both and `bound`, which is not stored: whoever
/// opens it must name the same. `key` has kSealKeyBytes.
Result<std::string> seal(std::string_view key, std::string_view plain, std::string_view bound);
/// Fails if the key or `bound` is another, or a bit was changed.
Result<std::string> unseal(std::string_view key, std::string_view sealed, std::string_view bound);

}  // namespace muster::net
