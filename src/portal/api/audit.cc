/// GET audit: what people did, newest first: through the portal and OpenPAI's API, as the portal wrote
/// it down, and directly, as the end of the cluster's audit log says. `all`: also what components did,
/// and what was only looked at.
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
  bool all = false;
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

/// Changes that people made with kubectl and the like. What came through the portal is in its trail.
bool is_deed(const json::Value& event) {
  const std::string_view verb = json::string_at(event, "verb");
  if (verb == "get" || verb == "list" || verb == "watch") return false;
  // Several questions in one round trip.
  if (json::string_at(event, "requestURI").starts_with("/muster/v1/reads")) return false;
  return json::at(event, "impersonatedUser").is_null() &&
         !json::string_at(event, "user", "username").starts_with("system:");
}

template <typename Each>
void each_line(std::string_view text, Each each) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (const auto value = json::parse(text.substr(0, end)); value && value->is_object())
      each(*value);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

struct Sources {
  std::string cluster, trail;      // files
  std::vector<std::string> lines;  // of a trail without a file
};

/// On a worker: values in, values out.
AuditPage read_page(const Sources& sources, const AuditQuery& query) {
  std::vector<json::Value> found;
  const auto keep = [&](json::Value row) {
    if (matches(query, row)) found.push_back(std::move(row));
  };
  if (!sources.cluster.empty())
    each_line(last_part(sources.cluster), [&](const json::Value& event) {
      if (query.all || is_deed(event)) keep(row_of(event));
    });
  if (!sources.trail.empty()) each_line(last_part(sources.trail), keep);
  for (const std::string& line : sources.lines) each_line(line, keep);
  std::stable_sort(found.begin(), found.end(), [](const json::Value& a, const json::Value& b) {
    return json::int_at(a, "at") > json::int_at(b, "at");
  });
  AuditPage page;
  page.total = found.size();
  for (std::size_t i = query.window.first; i < std::min(query.window.end, found.size()); ++i)
    page.rows.push_back(std::move(found[i]));
  return page;
}

}  // namespace

Task<void> serve_audit(ApiWorld api, ApiCall call) {
  if (!call.visitor.user.admin) {
    co_await answer(call.writer,
                    error_answer(403, "Forbidden", "only administrators may read the audit log"));
    co_return;
  }
  const auto window = window_of_target(call.target);
  if (!window) {
    co_await answer_error(call.writer, window.error());
    co_return;
  }
  AuditQuery query;
  query.window = *window;
  query.all = !call.target.get("all").empty();
  query.user = call.target.get("user");
  query.text = to_lower(call.target.get("q"));
  query.from = parse_int(call.target.get("from")).value_or(0);
  query.to = parse_int(call.target.get("to")).value_or(0);
  AuditPage page;
  const Sources sources{
      api.world.options.audit_file, api.world.trail.file(), api.world.trail.lines()};
  co_await api.world.env.run_on_worker(
      [&page, &query, &sources] { page = read_page(sources, query); });
  co_await answer_json(call.writer, {{"total", page.total}, {"rows", std::move(page.rows)}});
}

}  // namespace muster::portal
