/// The order in which the nodes of a view are tried, kept sorted incrementally.
///
/// HiveD re-sorts all entries of a view, stably and in place, at every search: healthy first, then
/// suggested, then more used, then fewer used at higher priority; ties keep the order of the search
/// before. Re-sorting costs O(m log m) a call. Here entries of one key form a bucket, and a changed
/// entry leaves its bucket for the front of its new one (if it came from an earlier bucket) or for
/// the back (from a later one): exactly what a stable sort does, at a cost of the entries that
/// changed.
///
/// Example: keys by use, entries a(2) b(1) c(1) d(0). d becomes 1: it comes from behind, so it goes
/// to the back: a | b c d. a becomes 1: it comes from the front: a b c d in one bucket.
///
/// Inside a bucket entries of one size have one free count, so "the next entry with room for k"
/// skips whole buckets.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace muster::engine::cells {

/// Entries of one key, in one list for each size of entry; labels order the bucket across its
/// lists.
struct ViewBucket {
  struct Sublist {
    std::int32_t total;
    std::int32_t head = -1, tail = -1;
  };
  std::int64_t lowest = 0, highest = -1;  // labels in use are inside [lowest, highest]
  std::int32_t count = 0;
  std::vector<Sublist> lists;
};

class View {
 public:
  struct Key {
    bool bad = false;
    bool unsuggested = false;
    std::int32_t same = 0;
    std::int32_t higher = 0;
  };
  struct PriorityCount {
    std::int32_t priority;
    std::int32_t count;
  };
  struct Entry {
    std::int32_t cell = -1;
    std::int32_t total = 0;
    bool unsuggested = false;  // as of the last search
    bool dirty = false;
    std::vector<PriorityCount> used;  // by priority, virtual views only
    std::uint64_t key = 0;
    std::int64_t label = 0;                 // position inside the bucket
    std::int32_t previous = -1, next = -1;  // same bucket, same total, ascending label
  };

  std::int32_t add(std::int32_t cell, std::int32_t total);
  std::size_t size() const { return entries_.size(); }
  const Entry& entry(std::int32_t index) const { return entries_[static_cast<std::size_t>(index)]; }
  Entry& entry(std::int32_t index) { return entries_[static_cast<std::size_t>(index)]; }
  /// Its key may have changed.
  void touch(std::int32_t index) {
    Entry& e = entry(index);
    if (!e.dirty) {
      e.dirty = true;
      dirty_.push_back(index);
    }
  }
  /// Counts leaves used at a priority, for the entry and the whole view.
  void count_used(std::int32_t index, std::int32_t priority, std::int32_t delta);
  /// Whether any leaf of the view is used at a priority below `priority`.
  bool used_below(std::int32_t priority) const;
  /// Leaves of the entry that are not used at `priority` or above.
  std::int32_t free_at(std::int32_t index, std::int32_t priority) const;

  /// Takes the changed entries to their places. key_of(index) gives the key now.
  template <typename KeyOf>
  void refresh(KeyOf key_of) {
    moved_.clear();
    for (const std::int32_t index : dirty_) {
      Entry& e = entry(index);
      e.dirty = false;
      const std::uint64_t key = pack(key_of(index));
      if (key != e.key) moved_.push_back({index, e.key, e.label, key});
    }
    dirty_.clear();
    if (!moved_.empty()) move_entries();
  }

  /// A walk through the view in order. `room(k)` finds, from the present entry on, the first entry
  /// that has k leaves free beyond those taken there by this walk; -1 when there is none.
  class Walk {
   public:
    /// priority < 0: nothing is preemptible, so free = total − used, known from the bucket.
    Walk(const View& view, std::int32_t priority);
    std::int32_t room(std::int32_t leaves);
    void take(std::int32_t leaves) { taken_ += leaves; }

   private:
    bool advance(std::int32_t leaves);
    void enter_bucket();
    const View& view_;
    std::int32_t priority_;
    std::int32_t entry_ = -1;
    std::int32_t taken_ = 0;
    std::int64_t label_ = 0;
    bool started_ = false;
    std::map<std::uint64_t, ViewBucket>::const_iterator bucket_;
    std::vector<std::int32_t> cursors_;
  };

  static std::uint64_t pack(const Key& key) {
    return (static_cast<std::uint64_t>(key.bad) << 63) |
           (static_cast<std::uint64_t>(key.unsuggested) << 62) |
           (static_cast<std::uint64_t>(0x7fffffff - key.same) << 31) |
           static_cast<std::uint64_t>(key.higher);
  }
  static std::int32_t used_of(std::uint64_t key) {
    return 0x7fffffff - static_cast<std::int32_t>((key >> 31) & 0x7fffffff) +
           static_cast<std::int32_t>(key & 0x7fffffff);
  }
  static bool bad_of(std::uint64_t key) { return (key >> 63) != 0; }
  static bool unsuggested_of(std::uint64_t key) { return ((key >> 62) & 1) != 0; }

  /// Entries that the last search saw as not suggested; the owner's to keep.
  std::vector<std::int32_t> unsuggested_entries;

  /// All entries in order; for tests and dumps.
  std::vector<std::int32_t> order() const;

 private:
  struct Moved {
    std::int32_t index;
    std::uint64_t old_key;
    std::int64_t old_label;
    std::uint64_t new_key;
  };
  void move_entries();
  void unlink(std::int32_t index);
  void link(std::int32_t index, std::uint64_t key, bool front);

  std::vector<Entry> entries_;
  std::vector<std::int32_t> dirty_;
  std::vector<Moved> moved_;
  std::vector<PriorityCount> used_;
  std::map<std::uint64_t, ViewBucket> buckets_;
};

}  // namespace muster::engine::cells
