/// The descriptions that `kubectl explain` shows, from data/descriptions.txt: "Type.field text" or
/// "Type text", one a line.
#include <map>
#include <string_view>

#include "base/strings.h"
#include "kube/embedded.h"
#include "kube/schema/openapi.h"

namespace muster::kube {

std::string_view description_of(std::string_view type, std::string_view field) {
  static const auto kTexts = [] {
    std::map<std::string_view, std::string_view> texts;
    std::string_view rest = embedded_descriptions();
    while (!rest.empty()) {
      const auto end = std::min(rest.find('\n'), rest.size());
      const std::string_view line = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      const auto space = line.find(' ');
      if (line.empty() || line[0] == '#' || space == std::string_view::npos) continue;
      texts.emplace(line.substr(0, space), trim(line.substr(space)));
    }
    return texts;
  }();
  std::string key(type);
  if (!field.empty()) key.append(".").append(field);
  auto found = kTexts.find(key);
  // What every kind has is written once.
  if (found == kTexts.end() && !field.empty()) found = kTexts.find("*." + std::string(field));
  return found == kTexts.end() ? std::string_view() : found->second;
}

}  // namespace muster::kube
