#include "agent/pod/pod_images.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "agent/image/pulls.h"
#include "agent/pod/runtime_choice.h"
#include "kube/meta.h"

namespace muster::agent {

using json::at;
using json::text;

namespace {

/// With what the pod's secrets say; names of secrets that are not there go to `missing`.
image::ImageWish wish_of(client::Informers& informers,
                         const json::Value& pod,
                         const json::Value& container,
                         std::vector<std::string>& missing) {
  image::ImageWish wish;
  wish.pod_uid = std::string(kube::uid_of(pod));
  wish.image = text(at(container, "image"));
  wish.policy = json::as_string(at(container, "imagePullPolicy"), "IfNotPresent");
  for (const auto& item : json::array_at(pod, "spec", "imagePullSecrets")) {
    const auto name = text(at(item, "name"));
    const auto secret = informers.get(client::resources::kSecrets)
                            .find(fmt::format("{}/{}", kube::namespace_of(pod), name));
    if (!secret || !wish.credentials.add_secret(*secret).empty()) missing.push_back(name);
  }
  return wish;
}

}  // namespace

Task<bool> PodImages::find(ContainerRecord& record) {
  if (record.image) co_return true;
  if (record.image_on_its_way) co_return false;
  const auto pod = life_.pod;
  const auto& spec = life_.spec_of(record);
  const auto name = text(at(spec, "image"));
  const bool on_host = json::string_at(*pod, "spec", "runtimeClassName") == kHostClass;
  const bool pulls = life_.context.image_source != nullptr;
  auto known = on_host ? Image{} : life_.context.images.find(name, pulls);
  if (!known && !pulls) known = Image{};
  std::string present = "Container image \"{}\" already present on machine";
  if (!known) {
    present += " and can be accessed by the pod";
    std::vector<std::string> missing;
    const auto wish = wish_of(life_.context.informers, *pod, spec, missing);
    known = co_await life_.context.image_source->pulls().find(wish);
  }
  if (known) {
    record.image = std::move(known);
    life_.event(&record, "Normal", "Pulled", fmt::format(fmt::runtime(present), name));
    co_return true;
  }
  record.image_on_its_way = true;
  life_.context.loop.spawn(fetch(life_.keep(), record.name));
  co_return false;
}

/// Beside the pod's life, which goes on meanwhile: it may be deleted while it waits.
Task<void> PodImages::fetch(std::shared_ptr<void> keep, std::string name) {
  const auto over = [this] { return life_.over(); };
  co_await life_.context.image_source->wait_ready();
  if (over()) co_return;
  std::vector<std::string> missing;
  auto wish =
      wish_of(life_.context.informers, *life_.pod, life_.spec_of(*life_.find(name)), missing);
  if (!missing.empty())
    life_.event(nullptr,
                "Warning",
                "FailedToRetrieveImagePullSecret",
                fmt::format("Unable to retrieve some image pull secrets ({}); attempting to pull "
                            "the image may not succeed.",
                            fmt::join(missing, ", ")));
  const auto tell = [this, over, name](const image::Told& told) {
    if (over()) return;
    life_.event(life_.find(name), told.warning ? "Warning" : "Normal", told.reason, told.message);
  };
  auto fetched = co_await life_.context.image_source->pulls().ensure(std::move(wish), tell);
  if (over()) co_return;
  auto& record = *life_.find(name);
  record.image_on_its_way = false;
  if (fetched.image) {
    record.image = std::move(fetched.image);
  } else {
    record.waiting_reason = fetched.reason;
    record.waiting_message = fetched.message;
    record.retry_at = life_.context.loop.now() + fetched.retry;
    life_.event(&record, "Warning", "Failed", fmt::format("Error: {}", fetched.reason));
    status_.publish();
  }
  life_.wake();
}

}  // namespace muster::agent
