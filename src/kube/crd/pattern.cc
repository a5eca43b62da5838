#include "kube/crd/pattern.h"

#include <re2/re2.h>

#include <unordered_map>

namespace muster::kube {
namespace {

constexpr std::size_t kPatternBytesMax = 4096;
constexpr std::size_t kCacheMax = 1000;

const re2::RE2* compiled(const std::string& pattern) {
  // One cache a thread: the loop's is the one that counts, and a test's thread needs no lock.
  thread_local std::unordered_map<std::string, std::unique_ptr<re2::RE2>> cache;
  const auto found = cache.find(pattern);
  if (found != cache.end()) return found->second.get();
  if (pattern.size() > kPatternBytesMax) return nullptr;
  if (cache.size() >= kCacheMax) cache.clear();
  // Perl's classes and the leftmost match of Go's regexp, which is RE2 too.
  re2::RE2::Options options;
  options.set_log_errors(false);
  auto made = std::make_unique<re2::RE2>(pattern, options);
  if (!made->ok()) made.reset();
  return cache.emplace(pattern, std::move(made)).first->second.get();
}

}  // namespace

bool pattern_compiles(const std::string& pattern) { return compiled(pattern) != nullptr; }

bool pattern_matches(const std::string& pattern, std::string_view text) {
  const re2::RE2* expression = compiled(pattern);
  if (expression == nullptr) return true;
  return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *expression);
}

}  // namespace muster::kube
