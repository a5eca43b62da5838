#include "cli/view/job_watch.h"

namespace muster::cli {
namespace {

Task<void> notify_on_change(Session& session,
                            client::Resource resource,
                            client::WatchOptions options,
                            std::shared_ptr<Signal> changed) {
  for (;;) {
    const auto watched =
        co_await session.cluster().watch(resource, options, [&](const client::WatchEvent&) {
          changed->notify();
          return true;
        });
    (void)watched;
    co_await session.env.sleep(std::chrono::seconds(1));
  }
}

}  // namespace

void JobWatch::start(const std::string& name, const client::Resource& resource, bool labelled) {
  client::WatchOptions pods, own;
  pods.list.ns = own.list.ns = session_.ns;
  if (labelled) pods.list.label_selector = "release=" + name;
  own.list.field_selector = "metadata.name=" + name;
  session_.env.spawn(notify_on_change(session_, client::resources::kPods, pods, changed_));
  session_.env.spawn(notify_on_change(session_, resource, own, changed_));
}

Task<void> JobWatch::wait(Duration longest) {
  const bool notified = co_await changed_->wait(longest);
  (void)notified;
}

}  // namespace muster::cli
