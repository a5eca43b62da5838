#include "apiserver/registry/image.h"

#include <algorithm>
#include <array>

#include "base/log.h"
#include "kube/apply/managed.h"

namespace muster::apiserver {
namespace {

/// History of one kind is bounded both ways; a watcher that falls behind is told to list again.
constexpr std::size_t kHistoryChangesMax = 100'000;
constexpr std::size_t kHistoryBytesMax = 32 * 1024 * 1024;
constexpr std::size_t kHistoryChangesMin = 500;
/// Events are the most numerous and nobody misses them: who falls behind lists again sooner.
constexpr std::size_t kEventHistoryBytesMax = 8 * 1024 * 1024;
constexpr std::size_t kResumeChangesMax = 20'000;
/// Texts of one kind that stay in memory beside those of its history: lists of ten thousand pods are
/// copied from there. Those of more objects are made of their trees when somebody wants them.
constexpr std::size_t kTextBytesMax = 64 * 1024 * 1024;

constexpr std::array<std::string_view, 14> kMetadataOrder = {"name",
                                                             "generateName",
                                                             "namespace",
                                                             "uid",
                                                             "resourceVersion",
                                                             "generation",
                                                             "creationTimestamp",
                                                             "deletionTimestamp",
                                                             "deletionGracePeriodSeconds",
                                                             "labels",
                                                             "annotations",
                                                             "ownerReferences",
                                                             "finalizers",
                                                             "managedFields"};

/// Rebuilds `object` with the named members first.
template <std::size_t N>
void reorder(json::Object& object, const std::array<std::string_view, N>& first) {
  std::array<json::Value*, N> named{};
  std::size_t position = 0;
  bool in_order = true;
  // Members nearly always stand in order, so the search begins where the last one was found.
  const auto rank_of = [&](std::string_view key) {
    const auto from = first.begin() + static_cast<std::ptrdiff_t>(std::min(position, N));
    auto found = std::find(from, first.end(), key);
    if (found == first.end()) {
      found = std::find(first.begin(), from, key);
      if (found == from) return N;
    }
    return static_cast<std::size_t>(found - first.begin());
  };
  for (auto& member : object) {
    const std::size_t rank = rank_of(member.key());
    in_order = in_order && rank >= position;
    position = rank;
    if (rank < N) named[rank] = &member.value();
  }
  if (in_order) return;
  json::Object ordered(object.storage());
  ordered.reserve(object.size());
  for (std::size_t rank = 0; rank < N; ++rank) {
    if (named[rank] != nullptr) ordered.emplace(first[rank], std::move(*named[rank]));
  }
  for (auto& member : object) {
    if (rank_of(member.key()) == N) ordered.emplace(member.key(), std::move(member.value()));
  }
  object = std::move(ordered);
}

}  // namespace

void order_members(json::Value& object) {
  if (!object.is_object()) return;
  constexpr std::array<std::string_view, 3> kTop = {"kind", "apiVersion", "metadata"};
  reorder(object.get_object(), kTop);
  if (json::Value* metadata = object.get_object().if_contains("metadata");
      metadata != nullptr && metadata->is_object()) {
    reorder(metadata->get_object(), kMetadataOrder);
  }
}

std::string_view Stored::ns() const {
  const auto slash = key.find('/');
  return slash == std::string::npos ? std::string_view() : std::string_view(key).substr(0, slash);
}

std::string_view Stored::name() const {
  const auto slash = key.find('/');
  return slash == std::string::npos ? std::string_view(key)
                                    : std::string_view(key).substr(slash + 1);
}

StoredPtr Collection::find(std::string_view key) const {
  const auto found = objects_.find(key);
  return found == objects_.end() ? nullptr : found->second;
}

std::size_t Collection::count(std::string_view ns) const {
  const auto found = counts_.find(std::string(ns));
  return found == counts_.end() ? 0 : found->second;
}

void Collection::each_in(std::string_view ns,
                         const std::function<void(const StoredPtr&)>& visit) const {
  const std::string prefix = std::string(ns) + "/";
  for (auto it = objects_.lower_bound(prefix);
       it != objects_.end() && it->first.starts_with(prefix);
       ++it)
    visit(it->second);
}

std::uint64_t Collection::sequence_after(Revision revision) const {
  const auto found = std::upper_bound(
      history_.begin(), history_.end(), revision, [](Revision wanted, const ChangePtr& change) {
        return wanted < change->revision;
      });
  return first_sequence_ + static_cast<std::uint64_t>(found - history_.begin());
}

Result<std::map<std::string, StoredPtr, std::less<>>> Collection::undone(Revision revision) const {
  if (revision < floor_)
    return fail(Code::kExpired, "The resourceVersion for the provided list is too old.");
  std::map<std::string, StoredPtr, std::less<>> objects;
  for (auto it = history_.rbegin(); it != history_.rend() && (*it)->revision > revision; ++it)
    objects[(*it)->after->key] = (*it)->before;
  return objects;
}

void Collection::unsubscribe(Subscription* subscription) {
  std::erase(subscriptions_, subscription);
}

void Collection::wake_all() {
  const auto subscriptions = subscriptions_;
  for (Subscription* subscription : subscriptions) subscription->tell(nullptr);
}

void Collection::publish(ChangePtr change) {
  const std::string& key = change->after->key;
  const std::string_view ns = change->after->ns();
  const auto place = objects_.lower_bound(key);
  const bool known = place != objects_.end() && place->first == key;
  if (known) discount_text(*place->second);
  if (!change->deleted) {
    count_text(*change->after);
    if (known) {
      place->second = change->after;
    } else {
      objects_.emplace_hint(place, key, change->after);
      ++counts_[std::string(ns)];
    }
  } else if (known) {
    objects_.erase(place);
    if (const auto found = counts_.find(std::string(ns));
        found != counts_.end() && --found->second == 0)
      counts_.erase(found);
  }
  history_bytes_ += change->after->object.text_size();
  history_.push_back(std::move(change));
  trim();
  const Change& newest = *history_.back();
  newest.publishing = true;
  for (Subscription* subscription : subscriptions_) {
    if (subscription->ns.empty() || subscription->ns == ns) subscription->tell(&newest);
  }
  newest.publishing = false;
  newest.lines = {};
}

void Collection::count_text(const Stored& newest) {
  newest.counted = true;
  text_bytes_ += newest.object.text_size();
}

void Collection::discount_text(const Stored& stored) {
  if (!std::exchange(stored.counted, false)) return;
  text_bytes_ -= stored.object.text_size();
}

void Collection::trim() {
  const std::size_t bytes_max = storage_ == "events" ? kEventHistoryBytesMax : kHistoryBytesMax;
  while (history_.size() > kHistoryChangesMax ||
         (history_bytes_ > bytes_max && history_.size() > kHistoryChangesMin)) {
    const Stored& oldest = *history_.front()->after;
    floor_ = history_.front()->revision;
    history_bytes_ -= oldest.object.text_size();
    // Who follows has been told of it: from now on only those want it who list or get it.
    if (oldest.counted && text_bytes_ > kTextBytesMax) {
      discount_text(oldest);
      oldest.object.drop_text();
    }
    history_.pop_front();
    ++first_sequence_;
  }
}

KeyLock& KeyLock::operator=(KeyLock&& other) noexcept {
  release();
  image_ = std::exchange(other.image_, nullptr);
  key_ = std::move(other.key_);
  return *this;
}

void KeyLock::release() {
  if (image_ == nullptr) return;
  const auto held = image_->locks_.find(key_);
  if (held != image_->locks_.end()) {
    if (held->second.queue.empty()) {
      image_->locks_.erase(held);
    } else {
      Signal* next = held->second.queue.front();
      held->second.queue.pop_front();
      next->notify();
    }
  }
  image_ = nullptr;
}

namespace {

/// "/pods/default/web-0" -> {"pods", "default/web-0"}.
std::pair<std::string_view, std::string_view> split_key(std::string_view key) {
  if (key.empty() || key[0] != '/') return {};
  const auto slash = key.find('/', 1);
  if (slash == std::string_view::npos) return {};
  return {key.substr(1, slash - 1), key.substr(slash + 1)};
}

}  // namespace

Result<void> Image::load() {
  std::string broken;
  Collection* target = nullptr;
  const Collection* counted = nullptr;
  std::string counted_ns;
  std::size_t* count = nullptr;
  const auto loaded = store_.load([&](store::Record record) {
    const auto [storage, key] = split_key(record.key);
    if (storage.empty() || !record.value->starts_with('{') || !record.value->ends_with('}')) {
      broken = record.key;
      return;
    }
    auto stored = std::make_shared<Stored>();
    stored->key = std::string(key);
    stored->revision = record.revision;
    // They come in the order of their keys: the collection, the namespace and the place are mostly
    // those of the last one.
    if (target == nullptr || target->storage() != storage) target = &collection(storage);
    if (!count || counted != target || counted_ns != stored->ns()) {
      counted = target;
      counted_ns = stored->ns();
      count = &target->counts_[counted_ns];
    }
    ++*count;
    const bool keep = target->text_bytes_ <= kTextBytesMax;
    stored->object.set_text(
        std::move(record.value), packer_, keep ? Tree::Keep::kBoth : Tree::Keep::kOne);
    if (keep) target->count_text(*stored);
    target->objects_.emplace_hint(target->objects_.end(), stored->key, std::move(stored));
  });
  if (!loaded) return loaded;
  if (!broken.empty())
    return fail(
        Code::kInternal,
        "the stored object \"" + broken + "\" cannot be read; restore the data folder from a copy");
  revision_ = store_.revision();
  loaded_ = revision_;
  for (auto& [name, each] : collections_) each->floor_ = loaded_;
  return {};
}

Collection& Image::collection(std::string_view storage) {
  const auto found = collections_.find(storage);
  if (found != collections_.end()) return *found->second;
  auto made = std::make_unique<Collection>(std::string(storage));
  made->floor_ = loaded_;
  return *collections_.emplace(std::string(storage), std::move(made)).first->second;
}

namespace {

std::string lock_name(const Collection& collection, std::string_view key) {
  std::string full;
  full.reserve(collection.storage().size() + 1 + key.size());
  full.append(collection.storage()).append(1, '/').append(key);
  return full;
}

}  // namespace

KeyLock Image::try_lock(const Collection& collection, std::string_view key) {
  std::string full = lock_name(collection, key);
  const bool inserted = locks_.try_emplace(full).second;
  return inserted ? KeyLock(this, std::move(full)) : KeyLock();
}

Task<KeyLock> Image::lock(const Collection& collection, std::string_view key) {
  std::string full = lock_name(collection, key);
  const auto [held, inserted] = locks_.try_emplace(full);
  if (!inserted) {
    const auto turn = env_.make_signal();
    held->second.queue.push_back(turn.get());
    co_await turn->wait(Duration::zero());
  }
  co_return KeyLock(this, std::move(full));
}

Task<Result<StoredPtr>> Image::put(Collection& collection,
                                   std::string key,
                                   json::Value object,
                                   Finish finish) {
  return write(collection, std::move(key), std::move(object), std::move(finish), false);
}

Task<Result<StoredPtr>> Image::erase(Collection& collection, std::string key, json::Value last) {
  return write(collection, std::move(key), std::move(last), nullptr, true);
}

namespace {

/// What is marked as deleted waits for its finalizers or its grace period: its writes lead to room.
store::Kind kind_of(const json::Value& object, bool deleted) {
  if (deleted) return store::Kind::kDelete;
  return json::at(object, "metadata", "deletionTimestamp").is_null() ? store::Kind::kPut
                                                                     : store::Kind::kPutToDelete;
}

}  // namespace

Task<Result<StoredPtr>> Image::write(
    Collection& collection, std::string key, json::Value object, Finish finish, bool deleted) {
  auto stored = std::make_shared<Stored>();
  stored->key = std::move(key);
  stored->revision = store_.next_revision();
  json::make(object, {"metadata", "resourceVersion"}) = std::to_string(stored->revision);
  const store::Kind kind = kind_of(object, deleted);

  auto change = std::make_shared<Change>();
  change->revision = stored->revision;
  change->before = collection.find(stored->key);
  change->after = stored;
  change->deleted = deleted;

  struct Outcome {
    std::unique_ptr<Signal> signal;
    Result<void> result;
  };
  const auto outcome = std::make_shared<Outcome>();
  outcome->signal = env_.make_signal();
  writes_.enter();
  // Nobody else knows the object until it is durable: so long it is the store's to finish, its text
  // and the tree that stays are the store's to make, and what they are made of is the store's to
  // take apart.
  auto make_text = [this,
                    stored,
                    finish = std::move(finish),
                    draft = std::make_shared<json::Value>(std::move(object))] {
    if (finish) finish(*draft);
    order_members(*draft);
    auto text = std::make_shared<const std::string>(kube::object_text(*draft));
    stored->object.set(packer_->pack(*draft), text);
    return text;
  };
  store_.write("/" + collection.storage() + "/" + stored->key,
               std::move(make_text),
               kind,
               [this, &collection, change, outcome](Result<void> result) {
                 writes_.leave();
                 if (result) {
                   revision_ = change->revision;
                   collection.publish(change);
                   for (const auto& observer : observers_) observer(collection, *change);
                 } else {
                   log::error("apiserver",
                              "write of {}/{} failed: {}",
                              collection.storage(),
                              change->after->key,
                              result.error().message);
                 }
                 outcome->result = std::move(result);
                 outcome->signal->notify();
               });
  co_await outcome->signal->wait(Duration::zero());
  if (!outcome->result) co_return fail(outcome->result.error());
  co_return StoredPtr(stored);
}

Result<std::vector<ChangePtr>> Image::older_changes(const Collection& collection,
                                                    Revision revision) {
  const auto changes = store_.changes_after(revision, kResumeChangesMax);
  if (!changes) return fail(changes.error());
  if (changes->size() >= kResumeChangesMax) return fail(Code::kExpired, "too many changes since");
  std::vector<ChangePtr> result;
  std::map<std::string, StoredPtr, std::less<>> seen;
  for (const store::Change& each : *changes) {
    if (each.revision > collection.floor()) break;
    const auto [storage, key] = split_key(each.key);
    if (storage != collection.storage()) continue;
    auto stored = std::make_shared<Stored>();
    stored->key = std::string(key);
    stored->revision = each.revision;
    stored->object.set_text(each.value, packer_);
    auto change = std::make_shared<Change>();
    change->revision = each.revision;
    change->after = stored;
    change->deleted = each.deleted;
    if (const auto before = seen.find(key); before != seen.end()) change->before = before->second;
    seen[stored->key] = each.deleted ? nullptr : StoredPtr(stored);
    result.push_back(std::move(change));
  }
  return result;
}

std::shared_ptr<Stored> Image::make_stored(std::string key,
                                           Revision revision,
                                           const json::Value& object) {
  auto stored = std::make_shared<Stored>();
  stored->key = std::move(key);
  stored->revision = revision;
  stored->object.set(packer_->pack(object),
                     std::make_shared<const std::string>(kube::object_text(object)));
  return stored;
}

Task<void> Image::drain() { (void)co_await writes_.wait_empty(Duration::zero()); }

}  // namespace muster::apiserver
