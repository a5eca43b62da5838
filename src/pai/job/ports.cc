#include "pai/job/ports.h"

#include <fmt/core.h>

#include <charconv>
#include <cstdint>

#include "base/md5.h"
#include "base/strings.h"

namespace muster::pai {
namespace {

std::uint64_t number(std::string_view hex) {
  std::uint64_t out = 0;
  std::from_chars(hex.data(), hex.data() + hex.size(), out, 16);
  return out;
}

}  // namespace

std::vector<int> ports_of(std::string_view pod_uid, std::string_view label, int count) {
  std::vector<int> out;
  for (int k = 0; k < count; ++k) {
    const std::string digest = md5_hex(fmt::format("[{}][{}][{}]", pod_uid, label, k));
    const std::string_view hex = digest;
    const std::uint64_t sum =
        number(hex.substr(0, 12)) + number(hex.substr(12, 12)) + number(hex.substr(24, 8));
    out.push_back(static_cast<int>(sum % (kPortLast - kPortFirst)) + kPortFirst);
  }
  return out;
}

std::string ports_text(std::string_view pod_uid, std::string_view label, int count) {
  std::vector<std::string> words;
  for (const int port : ports_of(pod_uid, label, count)) words.push_back(std::to_string(port));
  return join(words, ",");
}

}  // namespace muster::pai
