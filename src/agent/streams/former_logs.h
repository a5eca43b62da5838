/// Logs of pods that are gone, for those whose logs shall outlive them (kube/framework.h, kKeepLogs).
/// The newest are kept: so many pods, so many bytes, so long. Blocks; run it on a worker.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"

namespace muster::agent {

struct FormerLogLimits {
  std::size_t pods_max = 1000;
  std::uintmax_t bytes_max = std::uintmax_t{1} << 30;
  std::chrono::hours age_max{24 * 7};
  /// The limits are looked at for one pod of so many: that costs a look at all that are kept.
  std::size_t checked_every = 32;
};

class FormerLogs {
 public:
  explicit FormerLogs(std::string directory, FormerLogLimits limits = {})
      : directory_(std::move(directory)), limits_(limits) {}

  /// Takes the logs out of the folder of a pod that is about to be removed.
  void keep(const std::string& pod_directory, const std::string& uid) const;
  /// What the container wrote, the last `bytes_max` of it; nothing if there is no such log.
  [[nodiscard]] std::optional<std::string> read(std::string_view uid,
                                                const std::string& container,
                                                std::size_t bytes_max) const;

 private:
  void forget_oldest() const;
  std::string directory_;
  FormerLogLimits limits_;
};

/// Of the agent whose state is in this folder.
inline FormerLogs former_logs(const std::string& agent_directory) {
  return FormerLogs(agent_directory + "/former");
}

}  // namespace muster::agent
