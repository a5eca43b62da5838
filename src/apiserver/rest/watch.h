/// Watches: a cursor over the collection's history.
///
/// A watcher keeps no queue of its own. It reads on from its position when it is woken; one whose
/// position has fallen out of the bounded history is told 410 and cut off. Where its events go,
/// those who inherit say: as lines over HTTP (watch_lines.cc), or as they are to a client of this
/// process (in_process.cc).
#pragma once

#include "apiserver/rest/rest.h"

namespace muster::apiserver {

/// What the options of a watch ask for.
struct WatchWanted {
  bool initial = false;  // ADDED for what exists
  bool mark_initial_end = false;
  bool bookmarks = false;
  Revision from = 0;  // events after this one
};
Result<WatchWanted> parse_watch_wanted(const Call& call);

class Watch {
 public:
  Watch(Core& core, Call& call, Selection selection, WatchWanted wanted);
  virtual ~Watch();
  Watch(const Watch&) = delete;

  /// From the first event to the last: until the client or the server ends it, the time is over, or
  /// it was told an error.
  Task<void> tell_events();

 protected:
  /// So much is put together before it is sent.
  static constexpr std::size_t kChunkBytes = 1024 * 1024;

  /// The client has gone.
  [[nodiscard]] virtual bool closed() const = 0;
  virtual void add(std::string_view type, const StoredPtr& stored) = 0;
  virtual void add_change(std::string_view type, const Change& change) = 0;
  virtual void add_bookmark(Revision revision, bool initial_end) = 0;
  virtual void add_error(const Error& error) = 0;
  /// How many bytes were added since the last flush.
  [[nodiscard]] virtual std::size_t added() const = 0;
  /// Sends what was added; false when there is nobody to send to.
  virtual Task<bool> flush() = 0;
  /// Something has happened in the collection; null: look.
  virtual void on_change(const Change* change) = 0;
  /// Sends what on_change() took along, before what is newer.
  virtual Task<bool> send_taken() = 0;
  /// The newest change of all, alone: add_change() and flush(), or better.
  virtual Task<bool> send_newest(const Change& change) = 0;

  /// "" when this watcher does not see the change.
  [[nodiscard]] std::string_view type_of(const Change& change) const;
  /// Adds the change if this watcher sees it.
  void append(const Change& change);

  Core& core_;
  Call& call_;
  WatchWanted wanted_;
  Collection& collection_;
  /// Shared with callbacks that may outlive the watch.
  std::shared_ptr<Signal> signal_;
  /// The watch waits, and everything before cursor_ is sent or taken along.
  bool idle_ = false;
  std::uint64_t cursor_ = 0;
  /// The revision that the client knows of.
  Revision told_ = 0;

 private:
  Task<bool> begin();
  Task<bool> send_initial();
  Task<bool> flush_initial();
  Task<bool> send_older();
  Task<void> follow();
  Task<bool> send_new();
  Task<void> send_error(Error error);
  [[nodiscard]] Error too_old(Revision revision) const;
  Duration timeout();

  Selection selection_;
  Gate::Sleeper sleeper_;
  Subscription subscription_;
};

}  // namespace muster::apiserver
