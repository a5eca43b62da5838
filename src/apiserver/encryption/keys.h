/// The keys by which Secrets are encrypted at rest.
///
/// A file of one key a line, 32 bytes in base64 (`openssl rand -base64 32`); empty lines and lines
/// from # on are passed over. The first key encrypts, every one decrypts: a new key is put first
/// and the old ones stay until muster has started once.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::apiserver::encryption {

struct Key {
  std::string id;     // of its digest: names it in records and messages
  std::string bytes;  // 32
};
using Keys = std::vector<Key>;

Result<Keys> parse_keys(std::string_view text);
/// The same from a file that only its owner may read.
Result<Keys> read_keys(const std::string& path);

/// A record's value as it is stored: `place` is the record's key, to which it is bound.
Result<std::string> encrypt(const Keys& keys, std::string_view place, std::string_view plain);
/// What was stored in plain is given back as it is.
Result<std::string> decrypt(const Keys& keys, std::string_view place, std::string_view stored);
/// Whether the value is encrypted with the first of the keys; with no key, whether it is not.
[[nodiscard]] bool is_current(const Keys& keys, std::string_view stored);

}  // namespace muster::apiserver::encryption
