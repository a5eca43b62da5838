/// The in-memory image of every object: what reads and watches are served from.
///
/// It shows durable state only. A write takes the lock of its key, reads the live object, computes
/// the next one, and hands it to the store under the next revision; when the store says it is
/// durable the image publishes it and wakes the watchers. Writers of one key wait for each other,
/// writers of different keys share commits. Changes are published in revision order across all
/// collections, so `revision()` is a consistent snapshot position. Everything runs on the loop.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apiserver/registry/tree.h"
#include "base/env.h"
#include "base/gate.h"
#include "base/result.h"
#include "json/json.h"
#include "store/store.h"

namespace muster::apiserver {

using store::Bytes;
using store::Revision;

/// One revision of one object. Immutable; shared by the image, its history and answers in flight.
struct Stored {
  std::string key;  // within the collection: "ns/name", or "name" for cluster-scoped kinds
  Revision revision = 0;
  Tree object;
  /// Its text is one of those that the collection keeps; on the loop only.
  mutable bool counted = false;
  /// Its text with only the members that the `fields` of lists named last: the same lists are asked
  /// for again and again, and picking costs more than sending. On the loop only.
  struct Picked {
    std::shared_ptr<const std::string> fields;
    std::string text;
  };
  mutable std::vector<Picked> picked;

  [[nodiscard]] std::string_view ns() const;
  [[nodiscard]] std::string_view name() const;
};
using StoredPtr = std::shared_ptr<const Stored>;

struct Change {
  Revision revision = 0;
  StoredPtr before;  // null: created (or, right after a restart, not known)
  StoredPtr after;   // for a deletion the last state, with the deletion's revision inside
  bool deleted = false;
  /// One watch line for each event type, form and served resource, made on first use and shared by
  /// all watchers.
  struct Line {
    char type;  // its first letter
    bool partial;
    std::shared_ptr<const void> resource;
    Bytes bytes;
  };
  mutable std::vector<Line> lines;
  /// Those who follow are being told of it; afterwards the lines are dropped, as a history of them
  /// would be as large as that of the objects.
  mutable bool publishing = false;
};
using ChangePtr = std::shared_ptr<const Change>;

/// Tells one watcher. `ns` empty: of all namespaces.
struct Subscription {
  std::string ns;
  /// The newest change of the history is new; or, without one, something else to look at.
  std::function<void(const Change*)> tell;
};

/// All objects of one kind, in key order, with the recent changes.
class Collection {
 public:
  explicit Collection(std::string storage) : storage_(std::move(storage)) {}

  [[nodiscard]] const std::string& storage() const { return storage_; }
  [[nodiscard]] const std::map<std::string, StoredPtr, std::less<>>& objects() const {
    return objects_;
  }
  [[nodiscard]] StoredPtr find(std::string_view key) const;
  [[nodiscard]] std::size_t count(std::string_view ns) const;
  /// The range of one namespace.
  void each_in(std::string_view ns, const std::function<void(const StoredPtr&)>& visit) const;

  /// History: changes [first_sequence, next_sequence), oldest first. All changes after `floor()`
  /// are there.
  [[nodiscard]] std::uint64_t first_sequence() const { return first_sequence_; }
  [[nodiscard]] std::uint64_t next_sequence() const { return first_sequence_ + history_.size(); }
  [[nodiscard]] const ChangePtr& change(std::uint64_t sequence) const {
    return history_[sequence - first_sequence_];
  }
  [[nodiscard]] Revision floor() const { return floor_; }
  /// The sequence of the first change after `revision`, which must not be below the floor.
  [[nodiscard]] std::uint64_t sequence_after(Revision revision) const;
  /// The newest change's revision (or the floor).
  [[nodiscard]] Revision newest() const {
    return history_.empty() ? floor_ : history_.back()->revision;
  }

  /// What has changed since `revision`, as it was then (null: it was not there); Expired when
  /// history does not reach back.
  [[nodiscard]] Result<std::map<std::string, StoredPtr, std::less<>>> undone(
      Revision revision) const;

  void subscribe(Subscription* subscription) { subscriptions_.push_back(subscription); }
  void unsubscribe(Subscription* subscription);
  /// Set when the kind is no longer served; watches end.
  bool retired = false;
  void wake_all();

 private:
  friend class Image;
  void publish(ChangePtr change);
  void trim();
  void count_text(const Stored& newest);
  void discount_text(const Stored& stored);

  std::string storage_;
  std::map<std::string, StoredPtr, std::less<>> objects_;
  std::unordered_map<std::string, std::size_t> counts_;
  std::deque<ChangePtr> history_;
  std::uint64_t first_sequence_ = 0;
  std::size_t history_bytes_ = 0;
  std::size_t text_bytes_ = 0;  // of the texts that are kept, all of newest states
  Revision floor_ = 0;
  std::vector<Subscription*> subscriptions_;
};

class Image;
/// Held while one key is being changed; gives way to the next writer when destroyed.
class KeyLock {
 public:
  KeyLock() = default;
  KeyLock(Image* image, std::string key) : image_(image), key_(std::move(key)) {}
  KeyLock(KeyLock&& other) noexcept
      : image_(std::exchange(other.image_, nullptr)), key_(std::move(other.key_)) {}
  KeyLock& operator=(KeyLock&& other) noexcept;
  ~KeyLock() { release(); }
  void release();
  explicit operator bool() const { return image_ != nullptr; }

 private:
  Image* image_ = nullptr;
  std::string key_;
};

class Image {
 public:
  Image(Env& env, store::Store& store) : env_(env), store_(store), writes_(env) {}

  /// Reads everything from the store.
  Result<void> load();

  /// Made on first use; never removed, so references stay good.
  Collection& collection(std::string_view storage);
  [[nodiscard]] const std::map<std::string, std::unique_ptr<Collection>, std::less<>>& collections()
      const {
    return collections_;
  }
  [[nodiscard]] Revision revision() const { return revision_; }

  Task<KeyLock> lock(const Collection& collection, std::string_view key);
  /// The same where nobody holds the key; an empty lock where somebody does.
  KeyLock try_lock(const Collection& collection, std::string_view key);
  /// Writes the object under a held lock; its metadata.resourceVersion is set to the new revision.
  /// What `finish` adds is nobody's business before: it runs on the store's thread.
  using Finish = std::function<void(json::Value& object)>;
  Task<Result<StoredPtr>> put(Collection& collection,
                              std::string key,
                              json::Value object,
                              Finish finish = nullptr);
  /// Removes the object under a held lock; `last` is what watchers are told.
  Task<Result<StoredPtr>> erase(Collection& collection, std::string key, json::Value last);

  /// Called for each published change, after the collection shows it.
  void observe(std::function<void(Collection&, const Change&)> observer) {
    observers_.push_back(std::move(observer));
  }

  /// Changes of a collection after `revision` up to its floor, from disk, for watches that resume
  /// across a restart.
  Result<std::vector<ChangePtr>> older_changes(const Collection& collection, Revision revision);

  /// One state of an object with its text, for those that are never stored. On any thread.
  std::shared_ptr<Stored> make_stored(std::string key,
                                      Revision revision,
                                      const json::Value& object);

  /// Waits until no write is under way.
  Task<void> drain();

 private:
  friend class KeyLock;
  struct Waiting {
    std::list<Signal*> queue;
  };
  Task<Result<StoredPtr>> write(
      Collection& collection, std::string key, json::Value object, Finish finish, bool deleted);

  Env& env_;
  store::Store& store_;
  std::map<std::string, std::unique_ptr<Collection>, std::less<>> collections_;
  std::unordered_map<std::string, Waiting> locks_;
  std::vector<std::function<void(Collection&, const Change&)>> observers_;
  Revision revision_ = 0;
  Revision loaded_ = 0;
  Gate writes_;
  const std::shared_ptr<json::Packer> packer_ = std::make_shared<json::Packer>();
};

/// Kind and apiVersion first, then metadata in Kubernetes' order, then the rest as it was.
void order_members(json::Value& object);

}  // namespace muster::apiserver
