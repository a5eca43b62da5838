#include "agent/pod/pod_status_writer.h"

#include <algorithm>

#include "base/log.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"

namespace muster::agent {

using json::at;
using json::text;

namespace {

/// Who waits for a status to be written waits for so many failures in a row, some twenty seconds.
constexpr int kPatience = 10;
constexpr Duration kRetryFirst = std::chrono::milliseconds(200),
                   kRetryMax = std::chrono::seconds(10);

}  // namespace

PodStatusWriter::PodStatusWriter(PodLife& life)
    : life_(life),
      published_(at(*life.pod, "status")),
      was_terminal_(life.terminal),
      patched_(life.context.loop.make_signal()) {}

void PodStatusWriter::begin() {
  starting_ = published_.is_null() || text(at(published_, "phase")) == "Pending";
  if (starting_) ++life_.context.starting;
}

void PodStatusWriter::no_longer_starting() {
  if (std::exchange(starting_, false)) --life_.context.starting;
}

void PodStatusWriter::rest() {
  if (!patching_) no_longer_starting();
}

void PodStatusWriter::publish() {
  if (was_terminal_ || life_.gone) return;
  changed_ = true;
  if (std::exchange(patching_, true)) return;
  life_.context.loop.spawn(patch(life_.keep()));
}

Task<void> PodStatusWriter::patch(std::shared_ptr<void> keep) {
  failures_ = 0;
  while (changed_ && !life_.gone && !life_.detached) {
    auto slot = co_await life_.context.status_slots.take();
    if (life_.gone || life_.detached) break;
    changed_ = false;
    // Once its sandbox is gone nobody knows any more whose it was.
    if (scheme_.empty() || life_.state.sandbox_ready)
      scheme_ = life_.context.runtime.id_scheme(life_.uid);
    auto status =
        pod_status(*life_.pod, life_.state, published_, scheme_, life_.context.loop.now());
    auto patch = status_patch(*life_.pod, published_, status);
    if (patch.is_null()) break;
    const auto ns = std::string(kube::namespace_of(*life_.pod));
    const auto name = std::string(kube::name_of(*life_.pod));
    const auto written = co_await life_.context.client.patch(client::resources::kPods,
                                                             ns,
                                                             name,
                                                             "status",
                                                             client::PatchType::kStrategic,
                                                             std::move(patch));
    slot.release();
    if (written) {
      published_ = std::move(status);
      failures_ = 0;
      continue;
    }
    if (written.error().code == Code::kNotFound || written.error().code == Code::kConflict)
      break;  // deleted, or another pod of the same name
    log::warn("agent", "status of pod {}/{}: {}", ns, name, written.error().message);
    // For as long as it takes: nobody else will ever say how the pod ended.
    changed_ = true;
    if (++failures_ == kPatience) {
      no_longer_starting();
      patched_->notify();
    }
    const Duration pause = kRetryFirst * (1 << std::min(failures_ - 1, 10));
    co_await life_.context.loop.sleep(std::min(pause, kRetryMax));
  }
  patching_ = false;
  no_longer_starting();
  patched_->notify();
}

Task<void> PodStatusWriter::write_until(Duration deadline) {
  publish();
  while (patching_ && life_.context.loop.monotonic() < deadline)
    co_await patched_->wait(deadline - life_.context.loop.monotonic());
}

Task<void> PodStatusWriter::flush() {
  publish();
  while (patching_ && failures_ < kPatience) co_await patched_->wait(Duration::zero());
}

}  // namespace muster::agent
