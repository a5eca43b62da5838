/// A job that the server has accepted: whatever its fields say, its controller's plan is made,
/// applied and made again.
#include <cstdint>
#include <string_view>

#include "controllers/common/test_world.h"
#include "controllers/controllers.h"
#include "kube/crd/crd.h"
#include "kube/kinds/validate.h"

using namespace muster;

namespace {

/// As the server would: false when it refuses the object.
bool admit(const client::Resource& resource, json::Value& object) {
  static const auto kCrds = [] {
    std::vector<kube::Crd> crds;
    for (const auto& definition : kube::bundled_crds())
      crds.push_back(*kube::parse_crd(definition));
    return crds;
  }();
  for (const auto& crd : kCrds) {
    if (crd.group != resource.group || crd.plural != resource.plural) continue;
    for (const auto& version : crd.versions) {
      if (version.name != resource.version) continue;
      version.schema->prune(object, nullptr);
      version.schema->set_defaults(object);
      return version.schema->validate(object).empty();
    }
  }
  const kube::Gvk gvk{resource.group, resource.version, resource.kind};
  const kube::Type* type = kube::Schema::builtin().find_type(gvk);
  if (type == nullptr || !kube::check_fields(*type, object)) return false;
  kube::drop_unknown_fields(*type, object);
  kube::set_defaults(kube::kind_of(gvk), object);
  kube::prepare_create(kube::kind_of(gvk), object, Time::from_seconds(1));
  return kube::validate_create(kube::kind_of(gvk), resource.namespaced, object).empty();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto kKinds = controllers::all_kinds(true);
  const auto job = json::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!job || !job->is_object()) return 0;
  for (const auto& kind : kKinds) {
    if (json::string_at(*job, "kind") != kind.resource.kind) continue;
    controllers::testing::TestWorld world("kind: none");
    world.job = *job;
    if (!admit(kind.resource, world.job)) continue;
    auto& metadata = json::make_object(world.job, {"metadata"});
    metadata["namespace"] = "default";
    metadata["uid"] = "job-uid";
    if (kind.accepts && !kind.accepts(world.job)) continue;
    for (int pass = 0; pass < 3; ++pass)
      world.last = kind.plan(world.job, world, world.settings, world.now);
  }
  return 0;
}
