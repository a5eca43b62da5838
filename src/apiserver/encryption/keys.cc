#include "apiserver/encryption/keys.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/files.h"
#include "base/strings.h"
#include "net/tls/seal.h"
#include "net/tls/tls.h"

namespace muster::apiserver::encryption {
namespace {

/// Before the key's id; no JSON begins so.
constexpr std::string_view kMark = "muster:aes-256-gcm:1:";
constexpr std::size_t kIdLength = 8;
constexpr std::size_t kHead = kMark.size() + kIdLength + 1;

std::string id_of(const std::string& bytes) {
  std::string id;
  for (const char c : net::sha256(bytes).substr(0, kIdLength / 2))
    id += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return id;
}

bool is_encrypted(std::string_view stored) {
  return stored.size() >= kHead && stored.starts_with(kMark);
}
std::string_view key_id(std::string_view stored) { return stored.substr(kMark.size(), kIdLength); }

}  // namespace

Result<Keys> parse_keys(std::string_view text) {
  Keys keys;
  int number = 0;
  for (const std::string& whole : split(text, '\n')) {
    ++number;
    const std::string_view line = trim(std::string_view(whole).substr(0, whole.find('#')));
    if (line.empty()) continue;
    auto bytes = base64_decode(line);
    if (!bytes || bytes->size() != net::kSealKeyBytes)
      return fail(
          Code::kBadRequest,
          fmt::format("line {}: wanted {} bytes in base64 (openssl rand -base64 32), found {}",
                      number,
                      net::kSealKeyBytes,
                      bytes ? fmt::format("{} bytes", bytes->size()) : "no base64"));
    Key key{id_of(*bytes), std::move(*bytes)};
    keys.push_back(std::move(key));
  }
  if (keys.empty())
    return fail(
        Code::kBadRequest,
        "wanted at least one key, 32 bytes in base64 (openssl rand -base64 32), found none");
  return keys;
}

Result<Keys> read_keys(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0 && (status.st_mode & 077) != 0)
    return fail(Code::kForbidden,
                fmt::format("others may read {}: chmod 600 {}", quoted(path), path));
  const auto text = read_file(path);
  if (!text) return fail(text.error());
  return parse_keys(*text);
}

Result<std::string> encrypt(const Keys& keys, std::string_view place, std::string_view plain) {
  if (keys.empty()) return std::string(plain);
  const Key& key = keys.front();
  const std::string head = fmt::format("{}{}:", kMark, key.id);
  const auto sealed = net::seal(key.bytes, plain, head + std::string(place));
  if (!sealed) return sealed;
  return head + *sealed;
}

Result<std::string> decrypt(const Keys& keys, std::string_view place, std::string_view stored) {
  if (!is_encrypted(stored)) return std::string(stored);
  const std::string_view id = key_id(stored);
  const auto key =
      std::find_if(keys.begin(), keys.end(), [&](const Key& each) { return each.id == id; });
  if (key == keys.end())
    return fail(
        Code::kForbidden,
        fmt::format("the stored object {} is encrypted with key {}, which {}",
                    quoted(place),
                    id,
                    keys.empty()
                        ? "is not known: start with --encryption-key-file"
                        : "is not in the file of --encryption-key-file: add it after the others"));
  auto plain = net::unseal(
      key->bytes, stored.substr(kHead), std::string(stored.substr(0, kHead)) + std::string(place));
  if (!plain)
    return fail(Code::kInternal,
                fmt::format("the stored object {} cannot be decrypted with key {}: {}; restore the "
                            "data folder from a copy",
                            quoted(place),
                            id,
                            plain.error().message));
  return plain;
}

bool is_current(const Keys& keys, std::string_view stored) {
  if (keys.empty()) return !is_encrypted(stored);
  return is_encrypted(stored) && key_id(stored) == keys.front().id;
}

}  // namespace muster::apiserver::encryption
