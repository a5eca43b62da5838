#include "answers/records/archive.h"

#include <algorithm>
#include <functional>

namespace muster::answers {
namespace {

std::uint64_t hash_of(std::string_view uid) { return std::hash<std::string_view>{}(uid); }

bool is_or_any(const std::string& wanted, const std::string* found) {
  return wanted.empty() || (found != nullptr && *found == wanted);
}

}  // namespace

bool RecordQuery::matches(const Summary& row) const {
  if (!is_or_any(user, row.user) || !is_or_any(queue, row.queue) || !is_or_any(ns, row.ns) ||
      !is_or_any(kind, row.kind) || !is_or_any(state, row.state))
    return false;
  if (!name.empty() && row.job != name) return false;
  if (since && row.ended && row.ended < since) return false;
  return !until || (row.ended ? row.ended : row.submitted) < until;
}

Summary summary_of(const Record& record, std::int64_t page, Time now) {
  Summary row;
  row.uid = record.uid;
  row.job = record.job;
  row.ns = &record.ns;
  row.kind = &record.kind;
  row.user = &record.user;
  row.queue = &record.queue;
  row.state = &record.state;
  row.priority = &record.priority;
  row.model = &record.model;
  row.milli = record.milli;
  row.tasks = record.tasks;
  row.attempts = static_cast<std::int64_t>(record.runs.size());
  row.submitted = record.submitted;
  row.started = record.started();
  row.ended = record.ended;
  row.page = page;
  for (const Run& run : record.runs) {
    if (run.how == "evicted") ++row.preempted;
    for (const Part& part : run.parts)
      row.held += part.milli * ((part.end ? part.end : now).seconds() - part.start.seconds());
  }
  return row;
}

void Archive::add(Page page, const std::vector<Record>& records) {
  const std::int64_t number = page.head.number;
  const auto sealed = std::make_shared<Sealed>();
  sealed->rows.reserve(records.size());
  for (const Record& record : records) {
    Summary row = summary_of(record, number, record.ended);
    for (const std::string** text :
         {&row.ns, &row.kind, &row.user, &row.queue, &row.state, &row.priority, &row.model})
      *text = word(**text);
    namespaces_.insert(record.ns);
    sealed->rows.push_back(std::move(row));
    uids_.insert(hash_of(record.uid));
  }
  last_number_ = std::max(last_number_, number);
  page.head.count = static_cast<std::int64_t>(records.size());
  sealed->page = std::move(page);
  size_ += records.size();
  pages_[number] = sealed;
}

std::optional<std::int64_t> Archive::drop_oldest() {
  if (pages_.empty()) return std::nullopt;
  const std::int64_t number = pages_.begin()->first;
  const SealedPtr oldest = pages_.begin()->second;
  for (const Summary& row : oldest->rows) uids_.erase(hash_of(row.uid));
  size_ -= oldest->rows.size();
  pages_.erase(pages_.begin());
  return number;
}

bool Archive::holds(std::string_view uid) const { return uids_.contains(hash_of(uid)); }

SealedPtr Archive::page_of(std::string_view uid) const {
  if (!holds(uid)) return nullptr;
  for (auto page = pages_.rbegin(); page != pages_.rend(); ++page) {
    const auto& rows = page->second->rows;
    if (std::any_of(rows.begin(), rows.end(), [&](const Summary& row) { return row.uid == uid; }))
      return page->second;
  }
  return nullptr;
}

void newest_first(const Pages& pages, const std::function<bool(const Summary&)>& each) {
  for (auto page = pages.rbegin(); page != pages.rend(); ++page) {
    const auto& rows = page->second->rows;
    for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
      if (!each(*row)) return;
    }
  }
}

std::optional<Record> find_in(const Sealed& sealed, std::string_view uid) {
  auto records = unpack_page(sealed.page);
  if (!records) return std::nullopt;
  for (Record& record : *records) {
    if (record.uid == uid) return std::move(record);
  }
  return std::nullopt;
}

json::Value summary_json(const Summary& row) {
  json::Object out{{"job", row.job},
                   {"uid", row.uid},
                   {"namespace", *row.ns},
                   {"kind", *row.kind},
                   {"user", *row.user},
                   {"queue", *row.queue},
                   {"state", *row.state},
                   {"shape",
                    json::Object{{"tasks", row.tasks},
                                 {"gpus", static_cast<double>(row.milli) / 1000},
                                 {"model", *row.model}}},
                   {"priority", *row.priority},
                   {"attempts", row.attempts},
                   {"preempted", row.preempted},
                   {"gpuSeconds", static_cast<double>(row.held) / 1000},
                   {"submitted", format_time(row.submitted)}};
  if (row.started) out["started"] = format_time(row.started);
  if (row.ended) out["ended"] = format_time(row.ended);
  return out;
}

}  // namespace muster::answers
