/// Label and field selectors: what parses prints to something that parses to the same; nothing
/// crashes on matching.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "kube/selector/selector.h"
#include "kube/table/table.h"

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const json::Value kObject =
      *json::parse(R"({"metadata":{"name":"x","labels":{"a":"b","n":"7"}},"l":[{"t":"x"}]})");
  if (const auto selector = kube::LabelSelector::parse(text)) {
    const bool matches = selector->matches_object(kObject);
    const auto again = kube::LabelSelector::parse(selector->text());
    if (!again || again->matches_object(kObject) != matches || again->text() != selector->text())
      std::abort();
  }
  if (const auto selector = kube::FieldSelector::parse(text)) {
    (void)selector->matches(kObject);
    (void)selector->check("", "Pod").has_value();
  }
  (void)kube::json_path(kObject, text);
  return 0;
}
