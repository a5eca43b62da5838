/// A thousand watches over TLS in one thread of low priority.
///
/// Arrival is the moment the kernel received the bytes (SO_TIMESTAMPING), not the moment this thread came to read them: watchers
/// live on machines of their own, and their work must not count as the server's.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace muster::bench {

class Watchers {
 public:
  struct Options {
    std::string host, port, token, target;
    int count = 0;
  };
  explicit Watchers(Options options);
  ~Watchers();

  /// How many have got their answer's head.
  [[nodiscard]] int connected() const { return connected_; }
  /// Ends the watches; gives the arrivals (CLOCK_REALTIME, ns) of every `"tick":"…"`.
  std::map<std::string, std::vector<std::int64_t>> finish();

 private:
  struct Connection;
  void run();
  bool open(Connection& connection);
  void read(Connection& connection);

  Options options_;
  std::atomic<int> connected_ = 0;
  std::atomic<bool> stop_ = false;
  std::map<std::string, std::vector<std::int64_t>> arrivals_;
  std::thread thread_;
};

/// CLOCK_REALTIME, as the kernel stamps packets.
std::int64_t realtime_ns();

}  // namespace muster::bench
