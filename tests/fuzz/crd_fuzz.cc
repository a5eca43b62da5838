/// A CustomResourceDefinition and, behind the first newline, an object of it: the definition is
/// refused or its schema prunes, defaults and checks the object. Pruning and defaulting a second
/// time change nothing.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "kube/crd/crd.h"
#include "kube/table/table.h"

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto line = std::min(text.find('\n'), text.size());
  const auto definition = json::parse(text.substr(0, line));
  if (!definition) return 0;
  const auto crd = kube::parse_crd(*definition);
  if (!crd) return 0;
  const auto object = json::parse(text.substr(std::min(line + 1, text.size())));
  for (const auto& version : crd->versions) {
    (void)version.schema->shape();
    if (!object) continue;
    json::Value value = *object;
    version.schema->prune(value, nullptr);
    version.schema->set_defaults(value);
    json::Value again = value;
    version.schema->prune(again, nullptr);
    version.schema->set_defaults(again);
    if (!json::equal(value, again)) std::abort();
    (void)version.schema->validate(value);
    (void)kube::table_row(version.info, value, Time::from_seconds(2));
  }
  return 0;
}
