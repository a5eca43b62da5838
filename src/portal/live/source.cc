#include "portal/live/source.h"

#include <fmt/core.h>

#include <unordered_map>

#include "json/text.h"

namespace muster::portal {
namespace {

void add_ids(std::string& out, std::string_view key, const std::vector<std::string_view>& ids) {
  out.append(",\"").append(key).append("\":[");
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i != 0) out += ',';
    json::append_string(out, ids[i]);
  }
  out += ']';
}

bool same_order(const ShownPage& a, const ShownPage& b) {
  if (a.rows.size() != b.rows.size()) return false;
  for (std::size_t i = 0; i < a.rows.size(); ++i) {
    if (a.rows[i].id != b.rows[i].id) return false;
  }
  return true;
}

void add_set(std::string& out, Source& source, const std::vector<const ShownRow*>& rows) {
  if (rows.empty()) return;
  out += R"(,"set":{)";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i != 0) out += ',';
    json::append_string(out, rows[i]->id);
    out += ':';
    source.append(out, *rows[i]);
  }
  out += '}';
}

}  // namespace

std::string answer_head(std::uint64_t version, Millis now) {
  return fmt::format(R"("rv":"{}","at":{})", version, now);
}

std::string snapshot_text(
    Source& source, Window window, Millis now, ShownPage* shown, std::string_view before) {
  std::string out = "{";
  out += before;
  out += answer_head(source.version(), now);
  if (!source.windowed()) {
    out += R"(,"value":)";
    out += source.value();
    return out + "}";
  }
  *shown = source.page(window);
  out += fmt::format(
      R"(,"total":{},"window":[{},{}])", shown->total, shown->window.first, shown->window.end);
  if (!shown->extra.empty()) out.append(",").append(shown->extra);
  out += R"(,"rows":[)";
  for (std::size_t i = 0; i < shown->rows.size(); ++i) {
    if (i != 0) out += ',';
    source.append(out, shown->rows[i]);
  }
  return out + "]}";
}

std::string difference_text(Source& source,
                            const ShownPage& old_page,
                            const ShownPage& page,
                            Millis now,
                            std::string_view before) {
  std::vector<const ShownRow*> changed;
  std::vector<std::string_view> left, order;
  if (same_order(old_page, page)) {
    for (std::size_t i = 0; i < page.rows.size(); ++i) {
      if (page.rows[i].version != old_page.rows[i].version) changed.push_back(&page.rows[i]);
    }
    if (changed.empty() && old_page.total == page.total && old_page.extra == page.extra) return "";
  } else {
    std::unordered_map<std::string_view, std::uint64_t> known;
    for (const ShownRow& row : old_page.rows) known.emplace(row.id, row.version);
    for (const ShownRow& row : page.rows) {
      order.push_back(row.id);
      const auto found = known.find(row.id);
      if (found == known.end() || found->second != row.version) changed.push_back(&row);
      if (found != known.end()) known.erase(found);
    }
    for (const ShownRow& row : old_page.rows) {
      if (known.contains(row.id)) left.push_back(row.id);
    }
  }
  std::string out = "{";
  out += before;
  out += answer_head(source.version(), now);
  out += fmt::format(R"(,"total":{})", page.total);
  if (page.extra != old_page.extra) out.append(",").append(page.extra);
  add_set(out, source, changed);
  if (!left.empty()) add_ids(out, "del", left);
  if (!same_order(old_page, page)) add_ids(out, "order", order);
  return out + "}";
}

}  // namespace muster::portal
