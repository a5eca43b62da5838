#include "agent/image/reference.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"

namespace muster::agent::image {
namespace {

constexpr std::size_t kRepositoryMax = 255, kTagMax = 128;

bool is_lower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_alnum(char c) { return is_lower(c) || (c >= 'A' && c <= 'Z'); }
bool is_hex(char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); }

/// Words of small letters and digits with one dot, one or two underscores, or dashes in between.
bool is_component(std::string_view text) {
  if (text.empty() || !is_lower(text.front()) || !is_lower(text.back())) return false;
  for (std::size_t i = 0; i < text.size();) {
    if (is_lower(text[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && !is_lower(text[end])) ++end;
    const auto between = text.substr(i, end - i);
    const bool dashes = between.find_first_not_of('-') == std::string_view::npos;
    if (!dashes && between != "." && between != "_" && between != "__") return false;
    i = end;
  }
  return true;
}

bool is_path(std::string_view text) {
  const auto parts = split(text, '/');
  return std::all_of(parts.begin(), parts.end(), is_component);
}

bool is_host(std::string_view text) {
  if (text.starts_with('[')) {
    return text.size() > 2 && text.ends_with(']') &&
           std::all_of(text.begin() + 1, text.end() - 1, [](char c) {
             return is_hex(c) || c == ':' || (c >= 'A' && c <= 'F');
           });
  }
  for (const auto& label : split(text, '.')) {
    if (label.empty() || !is_alnum(label.front()) || !is_alnum(label.back())) return false;
    for (const char c : label) {
      if (!is_alnum(c) && c != '-') return false;
    }
  }
  return true;
}

bool is_domain(std::string_view text) {
  const auto colon = text.rfind(':');
  const bool port = colon != std::string_view::npos && !text.substr(colon).ends_with(']');
  if (!port) return is_host(text);
  const auto number = text.substr(colon + 1);
  return !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos &&
         is_host(text.substr(0, colon));
}

bool is_tag(std::string_view text) {
  if (text.empty() || text.size() > kTagMax || (!is_alnum(text[0]) && text[0] != '_')) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return is_alnum(c) || c == '_' || c == '.' || c == '-';
  });
}

bool is_digest(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  const auto kind = text.substr(0, colon), hex = text.substr(colon + 1);
  const std::size_t wanted = kind == "sha256"   ? 64
                             : kind == "sha384" ? 96
                             : kind == "sha512" ? 128
                                                : 0;
  return wanted != 0 && hex.size() == wanted && std::all_of(hex.begin(), hex.end(), is_hex);
}

/// The first part is a host if it looks like one; else the image is Docker's.
void split_domain(std::string_view text, Reference& out) {
  const auto slash = text.find('/');
  const auto first = text.substr(0, slash);
  const bool host =
      slash != std::string_view::npos && (first.find_first_of(".:") != std::string_view::npos ||
                                          first == "localhost" || to_lower(first) != first);
  if (host) {
    out.domain = std::string(first);
    out.path = std::string(text.substr(slash + 1));
  } else {
    out.domain = "docker.io";
    out.path = std::string(text);
  }
  if (out.domain == "index.docker.io") out.domain = "docker.io";
  if (out.domain == "docker.io" && out.path.find('/') == std::string::npos)
    out.path = "library/" + out.path;
}

}  // namespace

std::string Reference::name() const {
  if (!digest.empty()) return repository() + "@" + digest;
  return repository() + ":" + tag;
}

Result<Reference> parse_reference(std::string_view text) {
  const auto bad = [text](std::string_view why) {
    return fail(Code::kInvalid, fmt::format("couldn't parse image name \"{}\": {}", text, why));
  };
  Reference out;
  auto rest = text;
  if (const auto sign = rest.find('@'); sign != std::string_view::npos) {
    out.digest = std::string(rest.substr(sign + 1));
    rest = rest.substr(0, sign);
    if (!is_digest(out.digest)) return bad("invalid reference format");
  }
  const auto slash = rest.rfind('/');
  const auto colon = rest.find(':', slash == std::string_view::npos ? 0 : slash);
  if (colon != std::string_view::npos) {
    out.tag = std::string(rest.substr(colon + 1));
    rest = rest.substr(0, colon);
    if (!is_tag(out.tag)) return bad("invalid reference format");
  }
  split_domain(rest, out);
  if (!is_path(out.path) && is_path(to_lower(out.path)))
    return bad(
        fmt::format("invalid reference format: repository name ({}) must be lowercase", rest));
  if (!is_domain(out.domain) || !is_path(out.path)) return bad("invalid reference format");
  if (out.repository().size() > kRepositoryMax)
    return bad("repository name must not be more than 255 characters");
  if (out.tag.empty() && out.digest.empty()) out.tag = "latest";
  return out;
}

}  // namespace muster::agent::image
