#include "portal/live/source.h"

#include <fmt/core.h>

#include <unordered_map>

#include "json/text.h"

namespace muster::portal {
namespace {

void add_left(std::string& out, const std::vector<std::string_view>& ids) {
  if (ids.empty()) return;
  out += R"(,"del":[)";
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i != 0) out += ',';
    json::append_string(out, ids[i]);
  }
  out += ']';
}

constexpr std::size_t kNew = ~std::size_t{0};

/// `from`: where each row of the page was before, or kNew. A list in which one row comes at the top
/// is told in a few bytes, not with every id of it.
void add_order(std::string& out, const ShownPage& page, const std::vector<std::size_t>& from) {
  out += R"(,"order":[)";
  for (std::size_t i = 0; i < from.size();) {
    if (i != 0) out += ',';
    if (from[i] == kNew) {
      json::append_string(out, page.rows[i++].id);
      continue;
    }
    std::size_t end = i + 1;
    while (end < from.size() && from[end] == from[end - 1] + 1) ++end;
    out += fmt::format("[{},{}]", from[i], from[end - 1] + 1);
    i = end;
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
                            Millis now) {
  std::vector<const ShownRow*> changed;
  std::vector<std::string_view> left;
  std::vector<std::size_t> from;
  const bool moved = !same_order(old_page, page);
  if (!moved) {
    for (std::size_t i = 0; i < page.rows.size(); ++i) {
      if (page.rows[i].version != old_page.rows[i].version) changed.push_back(&page.rows[i]);
    }
    if (changed.empty() && old_page.total == page.total && old_page.extra == page.extra) return "";
  } else {
    std::unordered_map<std::string_view, std::size_t> known;
    for (std::size_t i = 0; i < old_page.rows.size(); ++i) known.emplace(old_page.rows[i].id, i);
    for (const ShownRow& row : page.rows) {
      const auto found = known.find(row.id);
      from.push_back(found == known.end() ? kNew : found->second);
      if (found == known.end() || old_page.rows[found->second].version != row.version)
        changed.push_back(&row);
      if (found != known.end()) known.erase(found);
    }
    for (const ShownRow& row : old_page.rows) {
      if (known.contains(row.id)) left.push_back(row.id);
    }
  }
  std::string out = answer_head(source.version(), now);
  out += fmt::format(R"(,"total":{})", page.total);
  if (page.extra != old_page.extra) out.append(",").append(page.extra);
  add_set(out, source, changed);
  add_left(out, left);
  if (moved) add_order(out, page, from);
  return out + "}";
}

}  // namespace muster::portal
