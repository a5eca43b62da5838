/// A protobuf request body: decoded to an object of its kind, or refused.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "kube/kinds/validate.h"
#include "kube/schema/protobuf.h"

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto object = kube::decode_protobuf(kube::Schema::builtin(),
                                      std::string_view(reinterpret_cast<const char*>(data), size));
  if (!object) return 0;
  const auto again = json::parse(json::dump(*object));
  // Strings that are not UTF-8 do not survive JSON; everything else must.
  if (!again) return 0;
  const kube::Gvk gvk = kube::gvk_of(*object);
  kube::set_defaults(kube::kind_of(gvk), *object);
  (void)kube::validate_create(kube::kind_of(gvk), true, *object);
  return 0;
}
