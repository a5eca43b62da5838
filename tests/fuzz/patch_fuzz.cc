/// Patches of every kind on one pod. The input is the patch; its first byte chooses the kind.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "kube/apply/apply.h"
#include "kube/apply/strategic.h"

using namespace muster;

namespace {

const json::Value& pod() {
  static const json::Value kPod = *json::parse(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"n","finalizers":["a/b","c/d"],"labels":{"a":"b"}},"spec":{"containers":[)"
      R"({"name":"a","image":"i","env":[{"name":"E","value":"1"}],"ports":[{"containerPort":80}]},{"name":"b","image":"i"}],"tolerations":[{"key":"k","operator":"Exists"}]}})");
  return kPod;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto patch =
      json::parse(std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1));
  if (!patch) return 0;
  const kube::Type& type = *kube::Schema::builtin().find_type({"", "v1", "Pod"});
  json::Value object = pod();
  switch (data[0] % 5) {
    case 0:
      json::merge_patch(object, *patch);
      break;
    case 1:
      if (!json::json_patch(object, *patch) && !json::equal(object, pod()))
        std::abort();  // a refused patch changes nothing
      break;
    case 2:
      if (!kube::strategic_merge(type, object, *patch) && !json::equal(object, pod())) std::abort();
      break;
    case 3: {
      kube::ApplyRequest request;
      request.manager = "m";
      request.api_version = "v1";
      request.force = true;
      request.now = Time::from_seconds(1);
      const auto first = kube::apply(&kube::shape_of(type), pod(), *patch, request);
      if (!first) break;
      // The same configuration again changes nothing.
      const auto second = kube::apply(&kube::shape_of(type), *first, *patch, request);
      if (!second || !json::equal(*first, *second)) std::abort();
      break;
    }
    default: {
      kube::ApplyRequest request;
      request.manager = "m";
      request.api_version = "v1";
      request.now = Time::from_seconds(1);
      json::merge_patch(object, *patch);
      const json::Value live = pod();
      kube::track_update(&kube::shape_of(type), &live, object, request);
    }
  }
  return 0;
}
