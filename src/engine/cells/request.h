/// One question to the cells, and the answer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/time.h"
#include "engine/cells/cells.h"
#include "engine/cells/groups.h"
#include "engine/model/cell_request.h"

namespace muster::engine::cells {

enum class Phase : std::uint8_t { kFiltering, kPreempting };

struct Victims {
  std::string node;
  std::vector<PodRef> pods;
};

struct Decision {
  enum class Kind : std::uint8_t { kBind, kPreempt, kWait, kError };
  Kind kind = Kind::kWait;
  BindInfo bind;
  /// By node; the original asks Kubernetes for the first node only.
  std::vector<Victims> victims;
  /// Of a wait or an error.
  std::string reason;
  /// Of a bind: which pod of the gang.
  std::int32_t slot = -1;
  /// A gang has lost what it had reserved.
  bool cancelled = false;
};

struct ScheduleRequest {
  const PodRef& pod;
  const PodSpec& spec;
  Phase phase = Phase::kFiltering;
  /// nullptr: all.
  const std::vector<std::string>* suggested = nullptr;
  Time now;
};

/// The reason of a gang for which its virtual cluster has no room.
std::string insufficient_capacity(const std::string& vc);

/// The nodes that the caller of one question suggests.
class Suggested {
 public:
  void load(const Cells& cells, const ScheduleRequest& request);
  /// All are, or the gang does not care.
  [[nodiscard]] bool ignored() const { return ignored_; }
  [[nodiscard]] bool contains(Index node) const {
    return ignored_ || stamps_[static_cast<std::size_t>(node)] == stamp_;
  }

 private:
  bool ignored_ = true;
  /// Counts the questions; a node with this stamp is suggested in the present one.
  std::uint32_t stamp_ = 0;
  std::vector<std::uint32_t> stamps_;
};

}  // namespace muster::engine::cells
