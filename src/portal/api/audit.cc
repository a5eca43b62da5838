/// GET audit: the end of the cluster's audit log, filtered, newest first.
#include <fmt/core.h>

#include <algorithm>
#include <fstream>

#include "base/strings.h"
#include "portal/api/api.h"

namespace muster::portal {
namespace {

/// What is looked at; older lines are in the file itself.
constexpr std::streamoff kBytesMax = 16 * 1024 * 1024;

struct AuditQuery {
  std::string user, text;
  Millis from = 0, to = 0;
  Window window;
};

struct AuditPage {
  std::size_t total = 0;
  json::Array rows;
};

std::string last_part(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return "";
  file.seekg(0, std::ios::end);
  const std::streamoff size = file.tellg();
  const std::streamoff begin = std::max<std::streamoff>(0, size - kBytesMax);
  file.seekg(begin);
  std::string text(static_cast<std::size_t>(size - begin), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  // The first line is whole only at the beginning of the file.
  if (begin > 0) text.erase(0, text.find('\n') + 1);
  return text;
}

json::Value row_of(const json::Value& event) {
  const json::Value& ref = json::at(event, "objectRef");
  std::string object = json::text_at(ref, "resource");
  if (const std::string_view sub = json::string_at(ref, "subresource"); !sub.empty())
    object += "/" + std::string(sub);
  if (const std::string_view ns = json::string_at(ref, "namespace"); !ns.empty())
    object += " " + std::string(ns) + "/";
  else
    object += " ";
  object += json::string_at(ref, "name");
  if (!ref.is_object()) object = json::text_at(event, "requestURI");
  const std::string_view as = json::string_at(event, "impersonatedUser", "username");
  const json::Array& addresses = json::array_at(event, "sourceIPs");
  return {{"id", json::text_at(event, "auditID")},
          {"at", millis_at(json::at(event, "requestReceivedTimestamp"))},
          {"user", as.empty() ? json::string_at(event, "user", "username") : as},
          {"from", addresses.empty() ? "" : json::as_string(addresses[0])},
          {"verb", json::text_at(event, "verb")},
          {"object", object},
          {"code", json::int_at(event, "responseStatus", "code")},
          {"text", json::text_at(event, "responseStatus", "message").substr(0, 300)}};
}

bool matches(const AuditQuery& query, const json::Value& row) {
  if (!query.user.empty() && json::string_at(row, "user") != query.user) return false;
  const Millis at = json::int_at(row, "at");
  if ((query.from != 0 && at < query.from) || (query.to != 0 && at >= query.to)) return false;
  if (query.text.empty()) return true;
  const std::string all = to_lower(json::dump(row));
  return all.find(query.text) != std::string::npos;
}

/// On a worker: values in, values out.
AuditPage read_page(const std::string& path, const AuditQuery& query) {
  AuditPage page;
  const std::string text = last_part(path);
  std::size_t end = text.size();
  while (end > 0) {
    const std::size_t newline = text.rfind('\n', end - 1);
    const std::size_t begin = newline == std::string::npos ? 0 : newline + 1;
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    end = newline == std::string::npos ? 0 : newline;
    if (line.empty()) continue;
    const auto event = json::parse(line);
    if (!event) continue;
    json::Value row = row_of(*event);
    if (!matches(query, row)) continue;
    if (page.total >= query.window.first && page.total < query.window.end)
      page.rows.push_back(std::move(row));
    ++page.total;
  }
  return page;
}

}  // namespace

Task<void> serve_audit(ApiWorld api, ApiCall call) {
  if (!call.visitor.user.admin) {
    co_await answer(call.writer,
                    error_answer(403, "Forbidden", "administrators alone read the audit log"));
    co_return;
  }
  const auto window = window_of_target(call.target);
  if (!window) {
    co_await answer_error(call.writer, window.error());
    co_return;
  }
  AuditQuery query;
  query.window = *window;
  query.user = call.target.get("user");
  query.text = to_lower(call.target.get("q"));
  query.from = parse_int(call.target.get("from")).value_or(0);
  query.to = parse_int(call.target.get("to")).value_or(0);
  AuditPage page;
  const std::string path = api.world.options.audit_file;
  co_await api.world.env.run_on_worker([&page, &query, &path] { page = read_page(path, query); });
  co_await answer_json(call.writer, {{"total", page.total}, {"rows", std::move(page.rows)}});
}

}  // namespace muster::portal
