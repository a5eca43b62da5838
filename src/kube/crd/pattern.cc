#include "kube/crd/pattern.h"

#include <regex>
#include <unordered_map>

namespace muster::kube {
namespace {

// The library's matcher recurses once per character, so the text's length is the stack's depth.
constexpr std::size_t kTextBytesMax = 4096;
constexpr std::size_t kCacheMax = 1000;

const std::regex* compiled(const std::string& pattern) {
  // One cache a thread: the loop's is the one that counts, and a test's thread needs no lock.
  thread_local std::unordered_map<std::string, std::unique_ptr<std::regex>> cache;
  const auto found = cache.find(pattern);
  if (found != cache.end()) return found->second.get();
  if (cache.size() >= kCacheMax || pattern.size() > kTextBytesMax) return nullptr;
  std::unique_ptr<std::regex> made;
  try {
    made = std::make_unique<std::regex>(pattern, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error&) {
  }
  return cache.emplace(pattern, std::move(made)).first->second.get();
}

}  // namespace

bool pattern_compiles(const std::string& pattern) { return compiled(pattern) != nullptr; }

bool pattern_matches(const std::string& pattern, std::string_view text) {
  const std::regex* regex = compiled(pattern);
  if (regex == nullptr) return true;
  if (text.size() > kTextBytesMax) return false;
  try {
    return std::regex_search(text.begin(), text.end(), *regex);
  } catch (const std::regex_error&) {  // too complex: refuse rather than let it through
    return false;
  }
}

}  // namespace muster::kube
