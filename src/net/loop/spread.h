/// Threads that help one other thread with many short calls, one for each further core. They start
/// when they are first needed.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace muster::net {

class Helpers {
 public:
  Helpers() = default;
  ~Helpers();
  Helpers(const Helpers&) = delete;

  /// Calls each(0) … each(count - 1), on this thread and the helpers together, and returns when all
  /// are done. One caller at a time.
  void spread(std::size_t count, const std::function<void(std::size_t)>& each);

 private:
  struct Batch;
  void start();
  void send_to_other_cores();
  void help();

  std::vector<std::thread> threads_;
  bool started_ = false;
  int core_ = -1;  // the caller's, where no helper may run

  std::mutex mutex_;
  std::condition_variable wake_;
  std::shared_ptr<Batch> batch_;  // under the mutex, with what follows
  std::uint64_t turn_ = 0;        // counts batches
  bool stop_ = false;
};

}  // namespace muster::net
