/// A request body as JSON of a pod: parsed or refused; what parsed survives a round trip, defaults,
/// checks and printing.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "json/json.h"
#include "kube/kinds/validate.h"
#include "kube/table/table.h"

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> duplicates;
  auto value = json::parse(text, &duplicates);
  if (!value) return 0;
  const auto again = json::parse(json::dump(*value));
  if (!again || !json::equal(*again, *value)) std::abort();

  const kube::Gvk gvk{"", "v1", "Pod"};
  const kube::Type& type = *kube::Schema::builtin().find_type(gvk);
  if (!kube::check_fields(type, *value)) return 0;
  json::Value pod = std::move(*value);
  kube::drop_unknown_fields(type, pod);
  kube::set_defaults(kube::kind_of(gvk), pod);
  const json::Value once = pod;
  kube::set_defaults(kube::kind_of(gvk), pod);
  if (!json::equal(once, pod)) std::abort();  // defaults are idempotent
  kube::prepare_create(kube::kind_of(gvk), pod, Time::from_seconds(1));
  (void)kube::validate_create(kube::kind_of(gvk), true, pod);
  (void)kube::validate_update(kube::kind_of(gvk), true, pod, once);
  for (const kube::ResourceInfo& info : kube::Schema::builtin().resources()) {
    if (info.plural == "pods" || info.plural == "events" || info.plural == "services")
      (void)kube::table_row(info, pod, Time::from_seconds(2));
  }
  return 0;
}
