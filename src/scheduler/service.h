/// The scheduler as a whole: its settings from files, the cells that the cluster remembers, and both
/// followed while it runs. `muster up` and `muster run` start it the same way.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "scheduler/live_cells.h"
#include "scheduler/live_config.h"
#include "scheduler/scheduler.h"

namespace muster::scheduler {

struct ServiceOptions {
  Options scheduling;
  /// File with Volcano's configuration, or a policy of Muster's own; read again when it changes.
  /// Empty: the defaults.
  std::string config_file;
  /// The defaults hold while the file is not there.
  bool config_optional = false;
  ConfigParser parse_config = nullptr;
  /// File with HiveD's configuration. Empty: what the cluster's ConfigMap says, now and whenever it
  /// changes.
  std::string cells_file;
  /// The file's cells are written to the ConfigMap, and followed there.
  bool keep_cells = false;
};

/// Puts what the files say into `scheduling`. Errors name the file and the line.
Result<void> read_files(ServiceOptions& options);

class Service {
 public:
  /// The files have been read.
  Service(Env& env, client::Client& client, client::Informers& informers, ServiceOptions options);
  /// Returns once it follows the cluster.
  Task<Result<void>> start();
  /// Before stop(), by one who leaves in good order (Scheduler::finish).
  Task<void> finish(Duration most);
  Task<void> stop();

  /// Null until start() has made it.
  [[nodiscard]] Scheduler* scheduler() const { return scheduler_.get(); }
  [[nodiscard]] bool idle() const { return !scheduler_ || scheduler_->idle(); }
  [[nodiscard]] bool ready() const { return scheduler_ && scheduler_->ready(); }
  /// The kinds that it misses, "plural.group".
  [[nodiscard]] std::vector<std::string> unknown() const;

 private:
  Env& env_;
  client::Client& client_;
  client::Informers& informers_;
  ServiceOptions options_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<LiveCells> live_cells_;
  std::unique_ptr<LiveConfig> live_config_;
};

}  // namespace muster::scheduler
