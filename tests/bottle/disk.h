/// A disk in memory below SQLite: a VFS of our own that knows what was synced. When the power goes,
/// what was not is lost, kept, torn at a sector or reordered, as the seed says; sectors are 512
/// bytes and are written whole or not at all.
///
/// One Disk is one machine's; it outlives the processes that use it. Files are opened by the VFS's
/// name (vfs()).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace muster::bottle {

class Disk {
 public:
  explicit Disk(std::uint64_t seed);
  ~Disk();
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  [[nodiscard]] const std::string& vfs() const { return vfs_; }

  /// The process that had files open is gone, and the machine with it: what was not synced is lost
  /// in part.
  void lose_power();
  /// The process is gone, the machine is not: all that was written stays.
  void lose_process();

  /// Operations that change the disk, so far. From operation `number` on every one fails, and
  /// nothing changes any more: where a crash happened that is acted out later.
  [[nodiscard]] std::uint64_t operations() const { return operations_; }
  void stop_at(std::uint64_t number) { stop_at_ = number; }
  [[nodiscard]] bool stopped() const { return operations_ >= stop_at_; }

  void set_full(bool full) { full_ = full; }
  void fail_next_sync() { fail_sync_ = true; }
  /// It has room, and syncs as it should.
  void mend() { full_ = fail_sync_ = false; }

  /// How often each thing happened, for the report.
  struct Counts {
    std::uint64_t lost = 0, torn = 0, kept = 0, refused = 0, failed_syncs = 0;
  };
  [[nodiscard]] const Counts& counts() const { return counts_; }

  /// Breaks the disk's promise on purpose: syncs do nothing. A checker must see it.
  void break_syncs() { lies_ = true; }

  // What the VFS's functions do, in disk.cc.

  /// What was there before a change, so that it can be undone.
  struct Change {
    std::size_t offset = 0;   // resized: the size since
    std::size_t bytes = 0;    // how many were written
    std::size_t size = 0;     // of the file before
    std::size_t covered = 0;  // in `before`: what was overwritten or cut off begins here
    bool resize = false;
  };
  /// A file as processes see it, and how to get from there to what the last sync left: few syncs
  /// are followed by a loss of power, so a write costs one copy and a sync none.
  struct File {
    std::string content;
    std::vector<Change> changes;                  // since the last sync
    std::string before;                           // what they covered, one after the other
    std::vector<std::unique_ptr<char[]>> shared;  // the memory that connections share
  };
  std::shared_ptr<File> open(const std::string& name);
  void remove(const std::string& name) { files_.erase(name); }
  [[nodiscard]] bool has(const std::string& name) const { return files_.contains(name); }
  /// 0, or SQLite's error code.
  int write(File& file, std::size_t offset, std::string_view bytes);
  int resize(File& file, std::size_t size);
  int sync(File& file);
  void fill_random(char* out, int count);

 private:
  int begin();
  void keep_some(File& file);

  std::string vfs_;
  void* registered_ = nullptr;
  Random random_;
  std::map<std::string, std::shared_ptr<File>> files_;
  std::uint64_t operations_ = 0;
  std::uint64_t stop_at_ = ~std::uint64_t{0};
  bool full_ = false;
  bool fail_sync_ = false;
  bool lies_ = false;
  Counts counts_;
};

}  // namespace muster::bottle
