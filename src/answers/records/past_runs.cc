#include "answers/records/past_runs.h"

#include "base/strings.h"

namespace muster::answers {

std::vector<engine::PastRun> past_runs(const Record& record, Time before) {
  std::vector<engine::PastRun> out;
  for (const Run& run : record.runs) {
    if (!run.end || run.end >= before) continue;
    engine::PastRun past;
    past.origin.user = record.pods_user.empty() ? record.user : record.pods_user;
    past.origin.stem = record.pods_stem.empty() ? record.stem : record.pods_stem;
    past.origin.team = record.queue;
    past.device_milli = run.milli;
    if (record.model_asked) past.models = split_nonempty(record.model, ',');
    past.ran = run.end - run.start;
    past.ended = run.how != "evicted" && run.how != "lost";
    past.stopped = run.how == "stopped";
    past.declared = record.declared;
    out.push_back(std::move(past));
  }
  return out;
}

}  // namespace muster::answers
