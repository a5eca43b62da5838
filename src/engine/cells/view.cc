#include "engine/cells/view.h"

#include <algorithm>

namespace muster::engine::cells {

std::int32_t View::add(std::int32_t cell, std::int32_t total) {
  const auto index = static_cast<std::int32_t>(entries_.size());
  Entry e;
  e.cell = cell;
  e.total = total;
  entries_.push_back(std::move(e));
  link(index, pack(Key{}), false);
  return index;
}

namespace {
void add_count(std::vector<View::PriorityCount>& counts,
               std::int32_t priority,
               std::int32_t delta) {
  for (auto it = counts.begin(); it != counts.end(); ++it) {
    if (it->priority == priority) {
      it->count += delta;
      if (it->count == 0) {
        *it = counts.back();
        counts.pop_back();
      }
      return;
    }
  }
  counts.push_back({priority, delta});
}
}  // namespace

void View::count_used(std::int32_t index, std::int32_t priority, std::int32_t delta) {
  add_count(entry(index).used, priority, delta);
  add_count(used_, priority, delta);
}

bool View::used_below(std::int32_t priority) const {
  return std::any_of(used_.begin(), used_.end(), [&](const PriorityCount& c) {
    return c.priority < priority && c.count > 0;
  });
}

std::int32_t View::free_at(std::int32_t index, std::int32_t priority) const {
  std::int32_t free = entry(index).total;
  for (const PriorityCount& c : entry(index).used) {
    if (c.priority >= priority) free -= c.count;
  }
  return free;
}

void View::unlink(std::int32_t index) {
  Entry& e = entry(index);
  const auto bucket = buckets_.find(e.key);
  for (ViewBucket::Sublist& list : bucket->second.lists) {
    if (list.total != e.total) continue;
    if (e.previous >= 0)
      entry(e.previous).next = e.next;
    else
      list.head = e.next;
    if (e.next >= 0)
      entry(e.next).previous = e.previous;
    else
      list.tail = e.previous;
    break;
  }
  e.previous = e.next = -1;
  if (--bucket->second.count == 0) buckets_.erase(bucket);
}

void View::link(std::int32_t index, std::uint64_t key, bool front) {
  Entry& e = entry(index);
  ViewBucket& bucket = buckets_[key];
  auto list = std::find_if(
      bucket.lists.begin(), bucket.lists.end(), [&](const auto& l) { return l.total == e.total; });
  if (list == bucket.lists.end()) {
    bucket.lists.push_back({e.total});
    list = std::prev(bucket.lists.end());
  }
  ++bucket.count;
  e.key = key;
  if (front) {
    e.label = --bucket.lowest;
    e.next = list->head;
    if (list->head >= 0)
      entry(list->head).previous = index;
    else
      list->tail = index;
    list->head = index;
  } else {
    e.label = ++bucket.highest;
    e.previous = list->tail;
    if (list->tail >= 0)
      entry(list->tail).next = index;
    else
      list->head = index;
    list->tail = index;
  }
}

void View::move_entries() {
  // Old position decides among those that move to one bucket.
  std::sort(moved_.begin(), moved_.end(), [](const Moved& a, const Moved& b) {
    return a.old_key != b.old_key ? a.old_key < b.old_key : a.old_label < b.old_label;
  });
  for (const Moved& m : moved_) unlink(m.index);
  for (const Moved& m : moved_) {
    if (m.old_key > m.new_key) link(m.index, m.new_key, false);
  }
  for (auto m = moved_.rbegin(); m != moved_.rend(); ++m) {
    if (m->old_key < m->new_key) link(m->index, m->new_key, true);
  }
}

std::vector<std::int32_t> View::order() const {
  std::vector<std::int32_t> out;
  for (const auto& [key, bucket] : buckets_) {
    const std::size_t begin = out.size();
    for (const auto& list : bucket.lists) {
      for (std::int32_t i = list.head; i >= 0; i = entry(i).next) out.push_back(i);
    }
    std::sort(out.begin() + static_cast<std::ptrdiff_t>(begin),
              out.end(),
              [&](std::int32_t a, std::int32_t b) { return entry(a).label < entry(b).label; });
  }
  return out;
}

View::Walk::Walk(const View& view, std::int32_t priority)
    : view_(view), priority_(priority), bucket_(view.buckets_.begin()) {
  if (bucket_ != view_.buckets_.end()) enter_bucket();
}

void View::Walk::enter_bucket() {
  cursors_.clear();
  for (const auto& list : bucket_->second.lists) cursors_.push_back(list.head);
}

bool View::Walk::advance(std::int32_t leaves) {
  for (; bucket_ != view_.buckets_.end();) {
    const std::int32_t used = used_of(bucket_->first);
    std::int32_t best = -1;
    for (std::size_t i = 0; i < cursors_.size(); ++i) {
      if (priority_ < 0 && bucket_->second.lists[i].total - used < leaves) continue;
      std::int32_t& cursor = cursors_[i];
      while (cursor >= 0 && ((started_ && view_.entry(cursor).label <= label_) ||
                             (priority_ >= 0 && view_.free_at(cursor, priority_) < leaves))) {
        cursor = view_.entry(cursor).next;
      }
      if (cursor >= 0 && (best < 0 || view_.entry(cursor).label < view_.entry(best).label))
        best = cursor;
    }
    if (best >= 0) {
      entry_ = best;
      label_ = view_.entry(best).label;
      started_ = true;
      taken_ = 0;
      return true;
    }
    ++bucket_;
    started_ = false;
    if (bucket_ != view_.buckets_.end()) enter_bucket();
  }
  entry_ = -1;
  return false;
}

std::int32_t View::Walk::room(std::int32_t leaves) {
  if (entry_ >= 0) {
    const std::int32_t free = priority_ < 0
                                  ? view_.entry(entry_).total - used_of(view_.entry(entry_).key)
                                  : view_.free_at(entry_, priority_);
    if (free - taken_ >= leaves) return entry_;
  }
  return bucket_ != view_.buckets_.end() && advance(leaves) ? entry_ : -1;
}

}  // namespace muster::engine::cells
