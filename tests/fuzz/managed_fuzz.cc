/// metadata.managedFields as a client sends them: packed, unpacked and read as sets. A set's text
/// reads back as the same set.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "kube/apply/managed.h"

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto fields = json::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!fields) return 0;
  auto set = kube::FieldSet::from_json(*fields);
  set.tidy();
  const auto parsed = json::parse(set.text());
  if (!parsed) std::abort();
  const auto again = kube::FieldSet::from_json(*parsed);
  if (again != set || again.text() != set.text()) std::abort();
  (void)set.paths();
  auto rest = set;
  rest.subtract(set);
  if (!rest.empty()) std::abort();

  json::Value object = json::Object{
      {"metadata",
       json::Object{
           {"managedFields", json::Array{json::Object{{"manager", "m"}, {"fieldsV1", *fields}}}}}}};
  kube::pack_managers(object);
  if (!json::parse(kube::object_text(object))) std::abort();
  kube::unpack_managers(object);
  const json::Value once = object;
  kube::pack_managers(object);
  kube::unpack_managers(object);
  if (!json::equal(once, object)) std::abort();
  return 0;
}
