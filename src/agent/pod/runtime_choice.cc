#include "agent/pod/runtime_choice.h"

#include "kube/resources.h"

namespace muster::agent {
namespace {

bool any_of_host(const Context& context, const json::Value& pod) {
  for (const auto* list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const auto& container : json::array_at(pod, "spec", list)) {
      const auto image = context.images.find(json::text_at(container, "image"), /*pulls=*/true);
      if (image && !image->pulled) return true;
    }
  }
  return false;
}

}  // namespace

RuntimeChoice runtime_of(const std::string& handler, bool of_host, const Context& context) {
  RuntimeChoice out;
  if (!context.has_cri || handler == kHostClass) return out;
  if (handler == kCriClass) out.cri = true;
  if (handler == kRunc || (context.foreign_cri && !handler.empty() && handler != kCriClass)) {
    out.cri = true;
    out.handler = handler;
  }
  // Whoever asks for it by name is told that it cannot be; others need not know.
  if (handler.empty()) out.cri = context.prefers_cri && !of_host;
  return out;
}

Task<RuntimeChoice> choose_runtime(Context& context, client::ObjectPtr pod) {
  std::string handler = json::text_at(*pod, "spec", "runtimeClassName");
  if (context.has_cri && !handler.empty()) {
    const auto found = co_await context.client.get(runtime_class_resource(), "", handler);
    if (found) handler = json::text_at(*found, "handler");
  }
  co_return runtime_of(handler, any_of_host(context, *pod), context);
}

kube::Resource runtime_class_resource() {
  const auto collection = kube::collections::kRuntimeClasses;
  const auto dot = collection.find('.');
  return kube::Resource{std::string(collection.substr(dot + 1)),
                        "v1",
                        std::string(collection.substr(0, dot)),
                        "RuntimeClass",
                        false};
}

}  // namespace muster::agent
