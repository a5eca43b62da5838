#include "apiserver/registry/finalizers.h"

#include <algorithm>

#include "apiserver/registry/writer.h"
#include "base/log.h"
#include "kube/meta.h"

namespace muster::apiserver {

bool has_finalizer(const json::Value& object, std::string_view finalizer) {
  const json::Array& all = json::array_at(object, "metadata", "finalizers");
  return std::any_of(all.begin(), all.end(), [&](const json::Value& each) {
    return json::as_string(each) == finalizer;
  });
}

void set_finalizer(json::Value& object, std::string_view finalizer, bool wanted) {
  json::Value& finalizers = json::make(object, {"metadata", "finalizers"});
  if (!finalizers.is_array()) finalizers = json::Array();
  json::Array& all = finalizers.get_array();
  const auto found = std::find_if(all.begin(), all.end(), [&](const json::Value& each) {
    return json::as_string(each) == finalizer;
  });
  if (wanted && found == all.end()) all.push_back(json::Value(finalizer));
  if (!wanted && found != all.end()) all.erase(found);
  if (all.empty()) json::remove(object, {"metadata", "finalizers"});
}

Task<bool> drop_finalizer(Core& core,
                          ResourcePtr resource,
                          StoredPtr stored,
                          std::string finalizer) {
  WriteOptions options;
  options.subresource = "internal";
  options.uid = std::string(kube::uid_of(stored->object));
  const auto done = co_await core.writer->update(
      resource,
      std::string(stored->ns()),
      std::string(stored->name()),
      [&finalizer](const json::Value& live) -> Result<json::Value> {
        json::Value next = live;
        set_finalizer(next, finalizer, false);
        return next;
      },
      options);
  if (done || done.error().code == Code::kNotFound || done.error().code == Code::kConflict)
    co_return true;
  log::warn("apiserver", "finalizer {} of {}: {}", finalizer, stored->key, done.error().message);
  co_return false;
}

}  // namespace muster::apiserver
