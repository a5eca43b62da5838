#include "portal/files/files.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/files.h"
#include "base/strings.h"
#include "net/tls/tls.h"
#include "portal/http/site.h"

namespace muster::portal {
namespace {

constexpr std::string_view kIndex = "index.html", kTerminal = "terminal.html";

/// Said in place of the portal, in a document that the policy allows.
constexpr std::string_view kAbsent =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Muster</title></head><body>\n"
    "<h1>Muster was built without its portal</h1>\n"
    "<p>The cluster works; only its web pages are missing, because there was no Node.js 20 or newer when the program was built. "
    "Install it (Debian: <code>apt-get install nodejs npm</code>) and build again: <code>make build</code>. "
    "Until then there are <code>kubectl</code>, <code>muster</code> and this server's API.</p>\n"
    "</body></html>\n";

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return out;
}

bool is_not_modified(const net::Request& request, std::string_view tag) {
  for (const std::string_view header : request.headers.all("If-None-Match")) {
    for (const std::string& one : split_nonempty(header, ',')) {
      std::string_view known = trim(one);
      if (known.starts_with("W/")) known.remove_prefix(2);
      if (known == tag || known == "*") return true;
    }
  }
  return false;
}

}  // namespace

std::string_view type_of(std::string_view path) {
  static constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {".html", "text/html; charset=utf-8"},
      {".js", "text/javascript; charset=utf-8"},
      {".css", "text/css; charset=utf-8"},
      {".svg", "image/svg+xml"},
      {".json", "application/json"},
      {".webmanifest", "application/manifest+json"},
      {".woff2", "font/woff2"},
      {".png", "image/png"},
      {".ico", "image/x-icon"},
      {".txt", "text/plain; charset=utf-8"}};
  for (const auto& [ending, type] : kTypes) {
    if (path.ends_with(ending)) return type;
  }
  return "application/octet-stream";
}

Encoding choose_encoding(std::string_view accept, bool gzip, bool brotli) {
  bool takes_gzip = false, takes_brotli = false;
  for (const std::string& item : split_nonempty(accept, ',')) {
    const auto semicolon = item.find(';');
    const std::string name = to_lower(trim(std::string_view(item).substr(0, semicolon)));
    std::string_view weight =
        semicolon == std::string::npos ? "" : trim(std::string_view(item).substr(semicolon + 1));
    const bool refused =
        weight.starts_with("q=0") && weight.find_first_not_of("q=0.") == std::string_view::npos;
    if (name == "gzip" || name == "*") takes_gzip = !refused;
    if (name == "br" || name == "*") takes_brotli = !refused;
  }
  if (takes_brotli && brotli) return Encoding::kBrotli;
  if (takes_gzip && gzip) return Encoding::kGzip;
  return Encoding::kIdentity;
}

Files::Files(std::string folder, const std::vector<EmbeddedFile>& inside)
    : folder_(std::move(folder)) {
  std::string all;
  for (const EmbeddedFile& file : inside) {
    by_path_[file.path] = &file;
    all += file.hash;
  }
  build_ = folder_.empty() ? hex(net::sha256(all)).substr(0, 12) : "folder";
}

bool Files::present() const { return !folder_.empty() || !by_path_.empty(); }

const EmbeddedFile* Files::find(std::string_view path) const {
  const auto found = by_path_.find(path);
  return found == by_path_.end() ? nullptr : found->second;
}

std::optional<std::string> Files::read(std::string_view path) const {
  if (path.find("..") != std::string_view::npos || path.starts_with('/')) return std::nullopt;
  auto text = read_file(folder_ + "/" + std::string(path));
  if (!text) return std::nullopt;
  return std::move(*text);
}

net::Response Files::answer(const net::Request& request, const net::Target& target) const {
  net::Response response;
  if (!present()) {
    response.headers.set("Content-Type", "text/html; charset=utf-8");
    response.headers.set("Cache-Control", "no-cache");
    response.headers.set("Content-Security-Policy", std::string(kPolicy));
    response.body = kAbsent;
    return response;
  }
  std::string path = target.path.substr(std::min<std::size_t>(1, target.path.size()));
  const bool asset = path.starts_with("assets/");
  const bool known =
      folder_.empty() ? find(path) != nullptr : !path.empty() && read(path).has_value();
  if (!known && asset)
    return error_answer(
        404, "NotFound", fmt::format("there is no file \"/{}\"", path.substr(0, 200)));
  const bool terminal = path == "terminal" || path.starts_with("terminal/") || path == kTerminal;
  if (!known) path = terminal ? kTerminal : kIndex;
  const bool page = path == kIndex || path == kTerminal;
  response.headers.set("Content-Type", std::string(type_of(path)));
  response.headers.set("Cache-Control", asset ? "public, max-age=31536000, immutable" : "no-cache");
  response.headers.set("Vary", "Accept-Encoding");
  if (page)
    response.headers.set("Content-Security-Policy",
                         std::string(path == kTerminal ? kTerminalPolicy : kPolicy));
  if (!folder_.empty()) {
    response.body = read(path).value_or("");
    return response;
  }
  const EmbeddedFile* file = find(path);
  if (file == nullptr)
    return error_answer(404, "NotFound", "this build of the portal lacks the page");
  const Encoding encoding = choose_encoding(
      request.headers.get("Accept-Encoding"), !file->gzip.empty(), !file->brotli.empty());
  const char* ending = encoding == Encoding::kBrotli ? "-br"
                       : encoding == Encoding::kGzip ? "-gz"
                                                     : "";
  const std::string tag = fmt::format("\"{}{}\"", file->hash.substr(0, 24), ending);
  response.headers.set("ETag", tag);
  if (is_not_modified(request, tag)) {
    response.status = 304;
    return response;
  }
  if (encoding == Encoding::kBrotli) response.headers.set("Content-Encoding", "br");
  if (encoding == Encoding::kGzip) response.headers.set("Content-Encoding", "gzip");
  response.body = encoding == Encoding::kBrotli ? file->brotli
                  : encoding == Encoding::kGzip ? file->gzip
                                                : file->identity;
  return response;
}

namespace {

/// "key=value", when there is a value.
void pass_on(std::string& query, std::string_view value, const char* key) {
  if (value.empty()) return;
  query += query.empty() ? '?' : '&';
  query.append(key).append("=").append(percent_encode(value));
}

/// OpenPAI's list of jobs wrote states as people read them, `Waiting`; the portal has REST's names.
std::string state_of(std::string_view status) {
  std::string state(status);
  for (char& c : state) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return state;
}

std::string job_page(const net::Target& target, const char* user_key) {
  return fmt::format(
      "/jobs/{}~{}", percent_encode(target.get(user_key)), percent_encode(target.get("jobName")));
}

}  // namespace

std::optional<std::string> openpai_page(const net::Target& target) {
  std::string_view path = target.path;
  if (path.starts_with('/')) path.remove_prefix(1);
  std::string query;
  if (path == "home.html") return "/";
  if (path == "index.html") {
    const std::string_view from = target.get("from");
    return from.empty() ? std::string("/") : "/login?next=" + percent_encode(safe_next(from));
  }
  if (path == "submit.html") {
    if (target.get("op") != "resubmit") return "/submit";
    return fmt::format("/submit?clone={}~{}",
                       percent_encode(target.get("user")),
                       percent_encode(target.get("jobName")));
  }
  if (path == "job-list.html") {
    pass_on(query, target.get("vcName"), "vc");
    pass_on(query, state_of(target.get("status")), "state");
    pass_on(query, target.get("user"), "user");
    pass_on(query, target.get("jobPriority"), "prio");
    pass_on(query, target.get("keyword"), "q");
    return "/jobs" + query;
  }
  if (path == "job-detail.html") return job_page(target, "username");
  if (path == "job-event.html") return job_page(target, "userName") + "/events";
  if (path == "task-attempt.html") {
    const char* user = target.has("username") ? "username" : "userName";
    return fmt::format("{}/tasks/{}/{}",
                       job_page(target, user),
                       percent_encode(target.get("taskRoleName")),
                       percent_encode(target.get("taskIndex")));
  }
  if (path == "user-view.html") return "/admin/users";
  if (path == "user-profile.html") return "/profile";
  if (path == "virtual-clusters.html") return "/queues";
  if (path == "cluster-view/hardware.html") return "/nodes";
  if (path == "cluster-view/services.html") return "/admin/services";
  return std::nullopt;
}

}  // namespace muster::portal
