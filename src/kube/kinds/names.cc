// The rules for names, labels and keys, by hand: they run on every write, and a regular expression
// would cost more than the rest of the validation together.
#include "kube/kinds/names.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include "base/strings.h"
#include "kube/kinds/validate.h"

namespace muster::kube {
namespace {

bool lower_alnum(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool alnum(char c) { return lower_alnum(c) || (c >= 'A' && c <= 'Z'); }

bool is_label(std::string_view text) {
  if (text.empty() || !lower_alnum(text.front()) || !lower_alnum(text.back())) return false;
  for (const char c : text) {
    if (!lower_alnum(c) && c != '-') return false;
  }
  return true;
}

bool is_subdomain(std::string_view text) {
  while (true) {
    const std::size_t dot = text.find('.');
    if (!is_label(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

/// ([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]
bool is_qualified_part(std::string_view text) {
  if (text.empty() || !alnum(text.front()) || !alnum(text.back())) return false;
  for (const char c : text) {
    if (!alnum(c) && c != '-' && c != '_' && c != '.') return false;
  }
  return true;
}

std::string too_long(std::size_t most) {
  return fmt::format("must be no more than {} characters", most);
}
/// Labels count bytes.
constexpr std::string_view kValueTooLong = "must be no more than 63 bytes";

constexpr std::string_view kSubdomainText =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
constexpr std::string_view kLabelText =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character "
    "(e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
constexpr std::string_view kLabel1035Text =
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric "
    "character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
constexpr std::string_view kNamePartText =
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
    "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
constexpr std::string_view kValueText =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

}  // namespace

std::string check_dns_label(std::string_view text) {
  if (text.size() > 63) return too_long(63);
  return is_label(text) ? std::string() : std::string(kLabelText);
}

std::string check_dns_1035_label(std::string_view text) {
  if (text.size() > 63) return too_long(63);
  return is_label(text) && !(text[0] >= '0' && text[0] <= '9') ? std::string()
                                                               : std::string(kLabel1035Text);
}

std::string check_dns_subdomain(std::string_view text) {
  if (text.size() > 253) return too_long(253);
  return is_subdomain(text) ? std::string() : std::string(kSubdomainText);
}

std::vector<std::string> qualified_name_problems(std::string_view text) {
  std::vector<std::string> problems;
  std::string_view name = text;
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    if (text.find('/', slash + 1) != std::string_view::npos) {
      return {
          "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. "
          "'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS "
          "subdomain prefix and '/' (e.g. 'example.com/MyName')"};
    }
    const std::string_view prefix = text.substr(0, slash);
    name = text.substr(slash + 1);
    if (prefix.empty()) {
      problems.push_back("prefix part must be non-empty");
    } else if (const std::string problem = check_dns_subdomain(prefix); !problem.empty()) {
      problems.push_back("prefix part " + problem);
    }
  }
  if (name.empty()) {
    problems.push_back("name part must be non-empty");
  } else if (name.size() > 63) {
    problems.push_back("name part " + std::string(kValueTooLong));
  }
  if (!is_qualified_part(name)) problems.emplace_back(kNamePartText);
  return problems;
}

std::string check_label_key(std::string_view text) {
  // Nearly every key is fine: say so without building the list.
  const std::size_t slash = text.find('/');
  const std::string_view name = slash == std::string_view::npos ? text : text.substr(slash + 1);
  if (is_qualified_part(name) && name.size() <= 63 &&
      (slash == std::string_view::npos || (slash <= 253 && is_subdomain(text.substr(0, slash)))))
    return {};
  const auto problems = qualified_name_problems(text);
  std::string joined;
  for (const std::string& problem : problems) joined += (joined.empty() ? "" : "; ") + problem;
  return joined;
}

std::string check_label_value(std::string_view text) {
  if (text.size() > 63) return std::string(kValueTooLong);
  return text.empty() || is_qualified_part(text) ? std::string() : std::string(kValueText);
}

std::string check_config_key(std::string_view text) {
  if (text.size() > 253) return too_long(253);
  bool fine = !text.empty();
  for (const char c : text) fine = fine && (alnum(c) || c == '-' || c == '_' || c == '.');
  if (!fine) {
    return "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used "
           "for validation is '[-._a-zA-Z0-9]+')";
  }
  if (text == ".") return "must not be '.'";
  if (text == "..") return "must not be '..'";
  if (text.starts_with("..")) return "must not start with '..'";
  return {};
}

std::string check_env_name(std::string_view text) {
  bool fine = !text.empty();
  for (const char c : text) fine = fine && c >= ' ' && c <= '~' && c != '=';
  return fine
             ? std::string()
             : "a valid environment variable name must consist only of printable ASCII characters other than '='";
}

std::string check_path_segment(std::string_view text) {
  if (text == ".") return "may not be '.'";
  if (text == "..") return "may not be '..'";
  if (text.find('/') != std::string_view::npos) return "may not contain '/'";
  if (text.find('%') != std::string_view::npos) return "may not contain '%'";
  return {};
}

std::vector<std::string> port_name_problems(std::string_view text) {
  std::vector<std::string> problems;
  if (text.size() > 15) problems.emplace_back("must be no more than 15 characters");
  bool letter = false;
  bool charset = !text.empty();
  for (const char c : text) {
    letter = letter || (c >= 'a' && c <= 'z');
    charset = charset && (lower_alnum(c) || c == '-');
  }
  if (!charset)
    problems.emplace_back("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  if (!letter) problems.emplace_back("must contain at least one letter (a-z)");
  if (text.find("--") != std::string_view::npos)
    problems.emplace_back("must not contain consecutive hyphens");
  if (text.starts_with('-') || text.ends_with('-'))
    problems.emplace_back("must not begin or end with a hyphen");
  return problems;
}

bool is_address(std::string_view text) {
  const std::string copy(text);
  in_addr v4{};
  in6_addr v6{};
  return ::inet_pton(AF_INET, copy.c_str(), &v4) == 1 ||
         ::inet_pton(AF_INET6, copy.c_str(), &v6) == 1;
}

bool is_address_range(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || !is_address(text.substr(0, slash))) return false;
  const auto bits = parse_int(text.substr(slash + 1));
  return bits && *bits >= 0 && *bits <= (text.find(':') == std::string_view::npos ? 32 : 128);
}

}  // namespace muster::kube
