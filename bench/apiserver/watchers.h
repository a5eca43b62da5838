/// A thousand watches over TLS in one thread.
///
/// Watchers live on machines of their own, and their work must not count as the server's: arrival
/// is the moment the kernel received the bytes (SO_TIMESTAMPING), and nothing is read until the
/// caller says so, when all has long arrived. Nobody polls the sockets either: over loopback it is
/// the sender's thread that would wake the poller, for each of them, under one lock.
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
  /// Reads what has arrived, until each has seen one event more than at the last call, for two
  /// seconds at most.
  void read_one();
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
  std::atomic<int> wanted_ = 0;  // events that each may read
  std::atomic<int> read_ = 0;    // events that all together have read
  std::map<std::string, std::vector<std::int64_t>> arrivals_;
  std::thread thread_;
};

/// How long this machine needs, with all its cores and nothing else to do, to encrypt so many bytes
/// for each of so many peers and to send them over loopback sockets: what no server with one
/// connection a watcher can be faster than.
double fanout_floor_ms(int watchers, std::size_t bytes);

/// CLOCK_REALTIME, as the kernel stamps packets.
std::int64_t realtime_ns();

}  // namespace muster::bench
