/// One course of a forecast, and what is noted of it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "answers/lasting.h"
#include "sim/course.h"

namespace muster::answers {

/// What one course says about one gang.
struct Seen {
  std::optional<Time> start, end;
  /// GPU time (thousandths of a GPU times µs) that ended before the start, by Source.
  std::array<double, 3> ended_before{};
  /// Who last left the nodes that it started on.
  std::vector<sim::Course::Ix> after;
};

class Rehearsal : public sim::Course {
 public:
  /// `asked` by gang of the cast: noted. It is over when all of them have started.
  Rehearsal(const engine::Engine& engine,
            const std::shared_ptr<const sim::Cast>& cast,
            Time now,
            const Settings& settings,
            const Lasting& lasting,
            std::int32_t draw,
            const std::vector<Ix>& asked);

  [[nodiscard]] const Seen& seen(Ix gang) const { return seen_[place_[gang]]; }
  /// How long the gang was said to last, and on whose word.
  [[nodiscard]] const Drawn& drawn(Ix gang) const { return drawn_[gang]; }
  /// The end of the run that goes on, or of the last one.
  [[nodiscard]] Time end_of(Ix gang) const { return ends_at(gang); }
  [[nodiscard]] Time start_of(Ix gang) const { return started_at(gang); }
  [[nodiscard]] const engine::GangView& gang(Ix gang) const { return view(gang); }
  [[nodiscard]] Ix gang_count() const { return count(); }
  [[nodiscard]] Ix find_gang(std::string_view key) const { return find(key); }

 protected:
  Duration lasts(Ix gang, Duration age) override;
  void started(Ix gang) override;
  void ended(Ix gang) override;
  void evicted(Ix gang) override;
  void bound(Ix gang, const engine::Bind& bind) override;
  [[nodiscard]] bool over() const override { return left_ == 0; }

 private:
  void spend(Ix gang);
  void grow();

  static constexpr std::uint32_t kNotAsked = ~std::uint32_t{0};
  const Lasting& lasting_;
  std::int32_t draw_;
  Time began_;
  std::vector<std::uint32_t> place_;  ///< Of a gang in seen_.
  std::vector<Seen> seen_;
  std::size_t left_ = 0;
  std::vector<Drawn> drawn_;
  std::vector<std::vector<std::string>> nodes_;  ///< Of gangs that started in the course.
  std::unordered_map<std::string, Ix> last_on_;  // looked up, never iterated
  std::array<double, 3> ended_{};
};

}  // namespace muster::answers
