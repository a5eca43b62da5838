// sla: jobs that have waited for longer than they should are let in whatever others say.
#include "base/strings.h"
#include "engine/volcano/plugins/plugins.h"

namespace muster::engine::volcano {

namespace {

class Sla : public Plugin {
 public:
  using Plugin::Plugin;

  /// The earlier deadline first; those without one last.
  [[nodiscard]] int job_order(JobIx a, JobIx b) const override {
    const std::int64_t x = deadline_us(snapshot_.jobs[a]);
    const std::int64_t y = deadline_us(snapshot_.jobs[b]);
    if (x == y) return 0;
    return x != 0 && (y == 0 || x < y) ? -1 : 1;
  }

  [[nodiscard]] Vote job_pipelined(const Job& job) const override { return overdue(job); }
  [[nodiscard]] Vote job_enqueueable(const Job& job) const override { return overdue(job); }

  [[nodiscard]] std::int64_t deadline_us(const Job& job) const override {
    const GangState& gang = state_.gang(job.gang);
    if (gang.spec->sla_waiting_time) return (gang.created + *gang.spec->sla_waiting_time).us;
    const std::string text = argument("sla-waiting-time");
    if (text.empty()) return 0;
    const auto wait = parse_duration(text);
    return wait && wait->count() > 0 ? (gang.created + *wait).us : 0;
  }

 private:
  [[nodiscard]] Vote overdue(const Job& job) const {
    const std::int64_t at = deadline_us(job);
    return at != 0 && at <= snapshot_.now.us ? Vote::kPermit : Vote::kNone;
  }
};

}  // namespace

std::unique_ptr<Plugin> make_sla(const VolcanoPlugin& config, Snapshot& snapshot) {
  return std::make_unique<Sla>(config, snapshot);
}

}  // namespace muster::engine::volcano
