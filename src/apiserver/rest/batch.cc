#include "apiserver/rest/batch.h"

#include "apiserver/registry/writer.h"

namespace muster::apiserver {
namespace {

/// Enough to fill a commit; a bound on what is in flight.
constexpr std::size_t kConcurrent = 256;

struct Progress {
  BatchResult result;
  std::size_t next = 0, running = 0;
  std::vector<StoredPtr> objects;
  std::unique_ptr<Signal> done;
};

Task<void> work(Core& core,
                ResourcePtr resource,
                DeleteRequest request,
                std::shared_ptr<Progress> progress) {
  const Gate::Pass pass(core.gate);
  while (progress->next < progress->objects.size()) {
    const std::size_t index = progress->next++;
    const StoredPtr& stored = progress->objects[index];
    const auto deleted = co_await core.writer->remove(
        resource, std::string(stored->ns()), std::string(stored->name()), request);
    if (deleted) {
      progress->result.objects[index] = deleted->object;
      if (!deleted->gone) ++progress->result.remaining;
    } else if (deleted.error().code != Code::kNotFound) {
      progress->result.failure = deleted.error();
      ++progress->result.remaining;
    }
  }
  if (--progress->running == 0) progress->done->notify();
}

}  // namespace

Task<BatchResult> remove_all(Core& core,
                             ResourcePtr resource,
                             std::vector<StoredPtr> objects,
                             DeleteRequest request) {
  const auto progress = std::make_shared<Progress>();
  progress->result.objects.resize(objects.size());
  progress->running = std::min(kConcurrent, objects.size());
  progress->objects = std::move(objects);
  progress->done = core.env.make_signal();
  const std::size_t workers = progress->running;
  for (std::size_t i = 0; i < workers; ++i) core.env.spawn(work(core, resource, request, progress));
  if (workers > 0) co_await progress->done->wait(Duration::zero());
  co_return std::move(progress->result);
}

}  // namespace muster::apiserver
