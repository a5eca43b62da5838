/// PodWorker: what a container is started from. On this machine's own files, in a folder, or an
/// image that has to be pulled first.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "agent/image/image_source.h"
#include "agent/pod/pod_worker.h"
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

Task<bool> PodWorker::find_image(ContainerRecord& record) {
  if (record.image) co_return true;
  if (record.image_on_its_way) co_return false;
  const auto pod = pod_;
  const auto& spec = spec_of(record);
  const auto name = text(at(spec, "image"));
  const bool on_host = json::string_at(*pod, "spec", "runtimeClassName") == kHostClass;
  auto known = on_host ? Image{} : context_.images.find(name);
  if (!known && context_.image_source == nullptr) known = Image{};
  std::string present = "Container image \"{}\" already present on machine";
  if (!known) {
    present += " and can be accessed by the pod";
    std::vector<std::string> missing;
    const auto wish = wish_of(context_.informers, *pod, spec, missing);
    known = co_await context_.image_source->pulls().find(wish);
  }
  if (known) {
    record.image = std::move(known);
    record_event(&record, "Normal", "Pulled", fmt::format(fmt::runtime(present), name));
    co_return true;
  }
  record.image_on_its_way = true;
  context_.loop.spawn(fetch_image(shared_from_this(), record.name));
  co_return false;
}

/// Beside the pod's life, which goes on meanwhile: it may be deleted while it waits.
Task<void> PodWorker::fetch_image(std::shared_ptr<PodWorker> self, std::string name) {
  const auto over = [this] { return detached_ || gone_ || kube::is_deleting(*pod_); };
  co_await context_.image_source->wait_ready();
  if (over()) co_return;
  std::vector<std::string> missing;
  auto wish = wish_of(context_.informers, *pod_, spec_of(*find_record(name)), missing);
  if (!missing.empty())
    record_event(nullptr,
                 "Warning",
                 "FailedToRetrieveImagePullSecret",
                 fmt::format("Unable to retrieve some image pull secrets ({}); attempting to pull "
                             "the image may not succeed.",
                             fmt::join(missing, ", ")));
  const auto tell = [this, over, name](const image::Told& told) {
    if (over()) return;
    record_event(find_record(name), told.warning ? "Warning" : "Normal", told.reason, told.message);
  };
  auto fetched = co_await context_.image_source->pulls().ensure(std::move(wish), tell);
  if (over()) co_return;
  auto& record = *find_record(name);
  record.image_on_its_way = false;
  if (fetched.image) {
    record.image = std::move(fetched.image);
  } else {
    record.waiting_reason = fetched.reason;
    record.waiting_message = fetched.message;
    record.retry_at = context_.loop.now() + fetched.retry;
    record_event(&record, "Warning", "Failed", fmt::format("Error: {}", fetched.reason));
    publish();
  }
  wake();
}

}  // namespace muster::agent
