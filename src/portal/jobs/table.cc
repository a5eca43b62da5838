#include "portal/jobs/table.h"

#include <algorithm>
#include <cstring>

#include "base/strings.h"

namespace muster::portal {
namespace {

/// The first eight bytes as a number that sorts as the text does.
std::uint64_t prefix_of(std::string_view text) {
  unsigned char bytes[8] = {};
  std::memcpy(bytes, text.data(), std::min<std::size_t>(text.size(), 8));
  std::uint64_t number = 0;
  for (const unsigned char byte : bytes) number = number << 8 | byte;
  return number;
}

std::uint64_t unsigned_of(std::int64_t number) {
  return static_cast<std::uint64_t>(number) ^ (1ULL << 63);
}

bool holds(const std::vector<Word>& words, Word word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string search_text(const Texts& texts) {
  std::string out = to_lower(texts.id);
  if (texts.id.find(texts.name) == std::string::npos) out += '\n' + to_lower(texts.name);
  for (const std::string& tag : texts.tags) out += '\n' + to_lower(tag);
  return out;
}

}  // namespace

Letters Letters::of(std::string_view text) {
  Letters letters;
  for (std::size_t i = 2; i < text.size(); ++i) {
    const auto letter = [&](std::size_t at) {
      return static_cast<std::uint32_t>(static_cast<unsigned char>(text[at]));
    };
    const std::uint32_t three = letter(i - 2) << 16 | letter(i - 1) << 8 | letter(i);
    const std::uint32_t bit = three * 2654435761U >> 25;
    (bit < 64 ? letters.low : letters.high) |= 1ULL << bit % 64;
  }
  return letters;
}

View::View(const Table& table, JobQuery query, Visible visible)
    : table_(table), query_(std::move(query)), visible_(std::move(visible)) {
  // Words that no row has yet get a number all the same: rows may come.
  Words& words = const_cast<Table&>(table).words_;
  for (const std::string& one : query_.users) users_.push_back(words.number(one));
  for (const std::string& one : query_.vcs) vcs_.push_back(words.number(one));
  for (const std::string& one : query_.queues) queues_.push_back(words.number(one));
  for (const std::string& one : query_.prios) {
    prio_classes_.push_back(words.number(one));
    if (const auto number = parse_int(one); number)
      prio_numbers_.push_back(static_cast<std::int32_t>(*number));
  }
  for (const std::string& one : query_.kinds) {
    for (std::size_t i = 0; i < kJobKinds; ++i) {
      if (one == kind_name(static_cast<JobKind>(i))) kinds_ |= 1U << i;
    }
  }
  for (const std::string& one : visible_.namespaces) namespaces_.push_back(words.number(one));
  letters_ = Letters::of(query_.text);
}

bool View::matches(Slot slot) const {
  const Keys& keys = table_.keys_[slot];
  if (!keys.used) return false;
  if (!visible_.all && !(visible_.openpai && keys.kind == JobKind::kOpenPai) &&
      !holds(namespaces_, keys.ns))
    return false;
  if (!users_.empty() && !holds(users_, keys.user)) return false;
  if (!vcs_.empty() && !holds(vcs_, keys.vc)) return false;
  if (!queues_.empty() && !holds(queues_, keys.queue)) return false;
  if (!query_.kinds.empty() && (kinds_ >> static_cast<int>(keys.kind) & 1U) == 0) return false;
  if (!prio_classes_.empty() && !holds(prio_classes_, keys.prio_class) &&
      std::find(prio_numbers_.begin(), prio_numbers_.end(), keys.prio) == prio_numbers_.end())
    return false;
  if (query_.from != 0 && keys.submitted < query_.from) return false;
  if (query_.to != 0 && keys.submitted >= query_.to) return false;
  if (!query_.text.empty() && (!table_.letters_[slot].cover(letters_) ||
                               table_.search_[slot].find(query_.text) == std::string::npos))
    return false;
  if (!query_.tags.empty()) {
    const std::vector<std::string>& tags = table_.texts_[slot].tags;
    if (std::none_of(tags.begin(), tags.end(), [&](const std::string& tag) {
          return std::binary_search(query_.tags.begin(), query_.tags.end(), tag);
        }))
      return false;
  }
  if (!query_.nodes.empty() &&
      std::none_of(query_.nodes.begin(), query_.nodes.end(), [&](const std::string& node) {
        return table_.runs_on && table_.runs_on(slot, node);
      }))
    return false;
  return true;
}

namespace {

/// Those that have started, then those that wait and are expected to, then those of whom nothing but
/// their place in line is known, or not even that; what will not start comes last.
std::uint64_t start_number(const Keys& keys, const Ahead& ahead) {
  const auto in_rank = [](std::uint64_t rank, std::int64_t number) {
    return rank << 56 | static_cast<std::uint64_t>(number);  // no time has so many bits
  };
  if (keys.started != 0) return in_rank(0, keys.started);
  if (keys.state != State::kWaiting) return in_rank(4, 0);
  if (ahead.start != 0) return in_rank(1, ahead.start);
  return ahead.place != 0 ? in_rank(2, ahead.place) : in_rank(3, keys.submitted);
}

/// What a row is sorted by.
struct Sorted {
  const Keys& keys;
  const Texts& texts;
  const Ahead& ahead;
};

/// What a sort field compares, as a number; texts beyond their beginning are compared after it.
std::uint64_t sort_number(const Sorted& row, const Words& words, SortField field, Millis now) {
  const auto& [keys, texts, ahead] = row;
  switch (field) {
    case SortField::kSubmitted:
      return unsigned_of(keys.submitted);
    case SortField::kName:
      return prefix_of(texts.name);
    case SortField::kUser:
      return prefix_of(words.text(keys.user));
    case SortField::kVc:
      return prefix_of(words.text(keys.vc));
    case SortField::kQueue:
      return prefix_of(words.text(keys.queue));
    case SortField::kKind:
      return prefix_of(kind_name(keys.kind));
    case SortField::kRetries:
      return unsigned_of(keys.retries_user + keys.retries_platform);
    case SortField::kTasks:
      return unsigned_of(keys.tasks_total);
    case SortField::kGpus:
      return unsigned_of(keys.gpus);
    case SortField::kPrio:
      return unsigned_of(keys.prio);
    case SortField::kState:
      return static_cast<std::uint64_t>(keys.state);
    case SortField::kStart:
      return start_number(keys, ahead);
    case SortField::kEnded:
      return unsigned_of(keys.ended);
    case SortField::kDuration:
      return keys.started == 0 ? 0
                               : unsigned_of((keys.ended != 0 ? keys.ended : now) - keys.started);
  }
  return 0;
}

/// The whole text, where its beginning does not decide.
std::string_view sort_text(const Keys& keys,
                           const Texts& texts,
                           const Words& words,
                           SortField field) {
  switch (field) {
    case SortField::kName:
      return texts.name;
    case SortField::kUser:
      return words.text(keys.user);
    case SortField::kVc:
      return words.text(keys.vc);
    case SortField::kQueue:
      return words.text(keys.queue);
    default:
      return "";
  }
}

}  // namespace

bool View::less(Slot a, Slot b) const {
  const Millis now = query_.sort == SortField::kDuration && table_.now ? table_.now() : 0;
  const auto number = [&](Slot slot) {
    const Sorted row{table_.keys_[slot], table_.texts_[slot], table_.ahead_[slot]};
    return sort_number(row, table_.words_, query_.sort, now);
  };
  const std::uint64_t left = number(a), right = number(b);
  if (left != right) return left < right;
  return text_less(a, b);
}

/// For those whose numbers are equal.
bool View::text_less(Slot a, Slot b) const {
  const auto text = [&](Slot slot) {
    return sort_text(table_.keys_[slot], table_.texts_[slot], table_.words_, query_.sort);
  };
  if (const int order = text(a).compare(text(b)); order != 0) return order < 0;
  return table_.texts_[a].id < table_.texts_[b].id;
}

/// The rows that are `in`, in the order of ids, each with the number that stands for its place.
std::vector<SortItem> View::items(const std::vector<char>& in) const {
  const Millis now = table_.now ? table_.now() : 0;
  std::vector<std::uint64_t> ranks;  // of words, by their texts
  const bool by_word = query_.sort == SortField::kUser || query_.sort == SortField::kVc ||
                       query_.sort == SortField::kQueue;
  if (by_word) ranks = table_.words_.ranks();
  std::vector<std::uint64_t> numbers(in.size());
  for (Slot slot = 0; slot < in.size(); ++slot) {
    if (in[slot] == 0) continue;
    const Keys& keys = table_.keys_[slot];
    if (by_word)
      numbers[slot] = ranks[query_.sort == SortField::kUser ? keys.user
                            : query_.sort == SortField::kVc ? keys.vc
                                                            : keys.queue];
    else
      numbers[slot] = sort_number(
          {keys, table_.texts_[slot], table_.ahead_[slot]}, table_.words_, query_.sort, now);
  }
  std::vector<SortItem> items;
  items.reserve(table_.used_);
  for (const Slot slot : table_.by_id_.slots()) {
    if (in[slot] != 0) items.push_back({numbers[slot], slot});
  }
  return items;
}

/// Rows are looked at in the order in which they lie in memory, and put in theirs afterwards: a
/// hundred thousand looks here and there take several times as long.
void View::build(const View* base) {
  order_.clear();
  built_ = table_.now ? table_.now() : 0;
  counts_ = {};
  std::vector<char> in(table_.slots());
  std::size_t count = 0;
  for (Slot slot = 0; slot < in.size(); ++slot) {
    if (!matches(slot)) continue;
    in[slot] = 1;
    ++count;
    ++counts_[static_cast<std::size_t>(table_.keys_[slot].state)];
  }
  order_.reserve(count);
  if (base != nullptr || query_.sort == SortField::kName) {
    for (const Slot slot : base != nullptr ? base->order_ : table_.by_name_.slots()) {
      if (in[slot] != 0) order_.push_back(slot);
    }
  } else {
    std::vector<SortItem> sorted = items(in);
    sort_stably(sorted);
    for (const SortItem& item : sorted) order_.push_back(item.slot);
  }
  ++version_;
}

void View::add(Slot slot) {
  const auto at = std::lower_bound(
      order_.begin(), order_.end(), slot, [&](Slot a, Slot b) { return less(a, b); });
  order_.insert(at, slot);
  ++counts_[static_cast<std::size_t>(table_.keys_[slot].state)];
  ++version_;
}

void View::remove(Slot slot, State state) {
  auto at = std::lower_bound(
      order_.begin(), order_.end(), slot, [&](Slot a, Slot b) { return less(a, b); });
  // Durations of what runs grow against those of what has ended, so that order is only nearly so.
  if (at == order_.end() || *at != slot) at = std::find(order_.begin(), order_.end(), slot);
  if (at == order_.end()) return;
  order_.erase(at);
  --counts_[static_cast<std::size_t>(state)];
  ++version_;
}

void View::touch(State before, State after) {
  --counts_[static_cast<std::size_t>(before)];
  ++counts_[static_cast<std::size_t>(after)];
  ++version_;
}

template <typename Each>
void Table::each_view(Each each) {
  for (auto at = views_.begin(); at != views_.end();) {
    if (const ViewPtr view = at->second.lock(); view) {
      each(*view);
      ++at;
    } else {
      at = views_.erase(at);
    }
  }
}

Slot Table::add(Keys keys, Texts texts) {
  Slot slot = 0;
  if (free_.empty()) {
    slot = static_cast<Slot>(keys_.size());
    keys_.emplace_back();
    texts_.emplace_back();
    search_.emplace_back();
    letters_.emplace_back();
    versions_.emplace_back();
    ahead_.emplace_back();
  } else {
    slot = free_.back();
    free_.pop_back();
  }
  ++used_;
  keys.used = true;
  keys_[slot] = keys;
  texts_[slot] = std::move(texts);
  make_searchable(slot);
  versions_[slot] = ++version_;
  by_id_.add(slot);
  by_name_.add(slot);
  each_view([&](View& view) {
    if (view.matches(slot)) view.add(slot);
  });
  return slot;
}

bool Table::set(Slot slot, const Keys& keys, Texts texts) {
  Keys next = keys;
  next.used = true;
  if (next == keys_[slot] && texts == texts_[slot]) return false;
  change(slot, next, std::move(texts));
  return true;
}

void Table::change(Slot slot, const Keys& keys, Texts texts) {
  struct Was {
    View& view;
    bool in, moves;
  };
  const State before = keys_[slot].state;
  // What was foretold of a wait that is over says nothing of the next one.
  const Ahead ahead = keys.state == State::kWaiting ? ahead_[slot] : Ahead{};
  const auto moves = [&](SortField field) {
    return field == SortField::kDuration || texts_[slot].id != texts.id ||
           sort_number({keys_[slot], texts_[slot], ahead_[slot]}, words_, field, 0) !=
               sort_number({keys, texts, ahead}, words_, field, 0) ||
           sort_text(keys_[slot], texts_[slot], words_, field) !=
               sort_text(keys, texts, words_, field);
  };
  std::vector<Was> was;
  each_view([&](View& view) {
    was.push_back({view, view.matches(slot), moves(view.query_.sort)});
    // Its place is found by what it was.
    if (was.back().in && was.back().moves) view.remove(slot, before);
  });
  const bool renamed = texts.id != texts_[slot].id || texts.name != texts_[slot].name;
  const bool searched = renamed || texts.tags != texts_[slot].tags;
  if (renamed) {
    by_id_.remove(slot);
    by_name_.remove(slot);
  }
  keys_[slot] = keys;
  texts_[slot] = std::move(texts);
  ahead_[slot] = ahead;
  versions_[slot] = ++version_;
  if (searched) make_searchable(slot);
  if (renamed) {
    by_id_.add(slot);
    by_name_.add(slot);
  }
  for (const Was& one : was) {
    const bool in = one.view.matches(slot);
    const bool stays = one.in && !one.moves;
    if (stays && in) one.view.touch(before, keys.state);
    if (stays && !in) one.view.remove(slot, before);
    if (!stays && in) one.view.add(slot);
  }
}

void Table::make_searchable(Slot slot) {
  search_[slot] = search_text(texts_[slot]);
  letters_[slot] = Letters::of(search_[slot]);
}

void Table::remove(Slot slot) {
  each_view([&](View& view) {
    if (view.matches(slot)) view.remove(slot, keys_[slot].state);
  });
  by_id_.remove(slot);
  by_name_.remove(slot);
  keys_[slot] = {};
  texts_[slot] = {};
  ahead_[slot] = {};
  search_[slot].clear();
  versions_[slot] = ++version_;
  free_.push_back(slot);
  --used_;
}

void Table::expect(std::vector<Ahead> ahead, std::uint64_t since) {
  ahead.resize(slots());
  for (Slot slot = 0; slot < slots(); ++slot) {
    if (versions_[slot] > since) ahead[slot] = ahead_[slot];
    if (keys_[slot].state != State::kWaiting) ahead[slot] = {};
  }
  if (ahead == ahead_) return;
  ahead_ = std::move(ahead);
  // What all see is the ground for everything narrower, and goes first.
  JobQuery everything;
  everything.sort = SortField::kStart;
  ViewPtr base;
  if (const auto at = views_.find(everything.key({.all = true})); at != views_.end())
    base = at->second.lock();
  if (base) base->build(nullptr);
  each_view([&](View& view) {
    if (view.query_.sort == SortField::kStart && &view != base.get()) view.build(base.get());
  });
}

ViewPtr Table::view(const JobQuery& query, const Visible& visible) {
  const std::string key = query.key(visible);
  ViewPtr found;
  if (const auto at = views_.find(key); at != views_.end()) found = at->second.lock();
  if (!found) {
    JobQuery everything;
    everything.sort = query.sort;
    const Visible all{.all = true};
    const std::string base_key = everything.key(all);
    ViewPtr base;
    // What all see in this order is the ground for everything narrower; durations move by
    // themselves and are put in order anew.
    if (key != base_key && query.sort != SortField::kDuration) base = view(everything, all);
    found = std::make_shared<View>(*this, query, visible);
    found->build(base.get());
    views_[key] = found;
  } else if (query.sort == SortField::kDuration && now && now() - found->built_ > kDurationsFor) {
    found->build(nullptr);
  }
  std::erase(kept_, found);
  kept_.push_front(found);
  if (kept_.size() > kKept) kept_.pop_back();
  return found;
}

Page Table::page(const View& view, const JobQuery& query, Window window) const {
  Page page;
  const std::vector<Slot>& order = view.order();
  const auto in = [&](Slot slot) {
    return query.states == 0 || (query.states >> static_cast<int>(keys_[slot].state) & 1U) != 0;
  };
  if (query.states == 0) {
    page.total = order.size();
  } else {
    for (std::size_t i = 0; i < kStates; ++i) {
      if ((query.states >> i & 1U) != 0) page.total += static_cast<std::size_t>(view.counts()[i]);
    }
  }
  page.window.end = std::min(window.end, page.total);
  page.window.first = std::min(window.first, page.window.end);
  std::size_t seen = 0;
  const auto take = [&](Slot slot) {
    if (!in(slot)) return true;
    if (seen >= page.window.first && seen < page.window.end) page.rows.push_back(slot);
    return ++seen < page.window.end;
  };
  page.rows.reserve(page.window.end - page.window.first);
  if (query.states == 0) {
    for (std::size_t i = page.window.first; i < page.window.end; ++i)
      page.rows.push_back(query.descending ? order[order.size() - 1 - i] : order[i]);
    return page;
  }
  if (page.window.end == page.window.first) return page;
  if (query.descending) {
    for (auto at = order.rbegin(); at != order.rend() && take(*at); ++at) {
    }
  } else {
    for (auto at = order.begin(); at != order.end() && take(*at); ++at) {
    }
  }
  return page;
}

std::vector<GroupRow> Table::groups(const View& view, const JobQuery& query) const {
  std::map<std::string, GroupRow> found;
  // Rows by the numbers that stand for their texts: a hundred thousand are counted without a text.
  std::vector<GroupRow*> by_number(std::max({words_.size(), kStates, kJobKinds}));
  std::unordered_map<std::int32_t, GroupRow*> by_prio;
  const auto count = [&](GroupRow& row, const Keys& keys) {
    ++row.jobs;
    row.gpus += keys.gpus;
    ++row.states[static_cast<std::size_t>(keys.state)];
  };
  const auto known = [&](GroupRow*& row, auto&& text) -> GroupRow& {
    if (row == nullptr) row = &found[std::string(text())];
    return *row;
  };
  const auto of_word = [&](Word word) -> GroupRow& {
    return known(by_number[word], [&] { return words_.text(word); });
  };
  // In the order in which rows lie in memory, as in View::build.
  for (Slot slot = 0; slot < slots(); ++slot) {
    const Keys& keys = keys_[slot];
    if (query.states != 0 && (query.states >> static_cast<int>(keys.state) & 1U) == 0) continue;
    if (!view.matches(slot)) continue;
    switch (query.group) {
      case GroupField::kNone:
        break;
      case GroupField::kUser:
        count(of_word(keys.user), keys);
        break;
      case GroupField::kVc:
        count(of_word(keys.vc), keys);
        break;
      case GroupField::kQueue:
        count(of_word(keys.queue), keys);
        break;
      case GroupField::kState:
        count(known(by_number[static_cast<std::size_t>(keys.state)],
                    [&] { return state_name(keys.state); }),
              keys);
        break;
      case GroupField::kPrio:
        count(keys.prio_class != 0
                  ? of_word(keys.prio_class)
                  : known(by_prio[keys.prio], [&] { return std::to_string(keys.prio); }),
              keys);
        break;
      case GroupField::kKind:
        count(known(by_number[static_cast<std::size_t>(keys.kind)],
                    [&] { return kind_name(keys.kind); }),
              keys);
        break;
      case GroupField::kTag:
        for (const std::string& tag : texts_[slot].tags) count(found[tag], keys);
        break;
    }
  }
  std::vector<GroupRow> rows;
  for (auto& [value, row] : found) {
    row.value = value;
    rows.push_back(std::move(row));
  }
  std::stable_sort(rows.begin(), rows.end(), [](const GroupRow& a, const GroupRow& b) {
    return a.jobs > b.jobs;
  });
  if (rows.size() > 1000) rows.resize(1000);
  return rows;
}

}  // namespace muster::portal
