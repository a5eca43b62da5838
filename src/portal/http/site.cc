#include "portal/http/site.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "json/text.h"

namespace muster::portal {

const std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";
const std::string_view kTerminalPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

std::string host_name(std::string_view host) {
  if (host.starts_with('[')) {
    const auto end = host.find(']');
    return to_lower(host.substr(0, end == std::string_view::npos ? host.size() : end + 1));
  }
  return to_lower(host.substr(0, host.find(':')));
}

bool host_accepted(const Site& site, const net::Request& request) {
  return site.hosts.contains(host_name(request.headers.get("Host")));
}

bool is_loopback(std::string_view address) {
  return address == "::1" || address == "[::1]" || address == "localhost" ||
         address.starts_with("127.");
}

namespace {

Error forbidden(std::string message) {
  Error error;
  error.code = Code::kForbidden;
  error.message = std::move(message);
  return error;
}

bool own_origin(const Site& site, const net::Request& request) {
  const std::string own = fmt::format("{}://{}", site.scheme(), request.headers.get("Host"));
  return to_lower(request.headers.get("Origin")) == to_lower(own);
}

bool is_safe(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS";
}

}  // namespace

Result<void> check_origin(const Site& site, const net::Request& request) {
  if (is_safe(request.method)) return {};
  if (const std::string_view from = request.headers.get("Sec-Fetch-Site"); !from.empty()) {
    if (from == "same-origin") return {};
    return fail(forbidden(fmt::format(
        "a page of another site sent this (Sec-Fetch-Site: {}); only the portal's own pages may make changes with its cookie",
        from.substr(0, 40))));
  }
  if (request.headers.get("Origin").empty())
    return fail(forbidden(
        "a change with the portal's cookie must say where it comes from (Origin or Sec-Fetch-Site); scripts use 'Authorization: Bearer' instead"));
  if (own_origin(site, request)) return {};
  return fail(forbidden(
      "a page of another site sent this; only the portal's own pages may make changes with its cookie"));
}

Result<void> check_socket_origin(const Site& site, const net::Request& request, bool with_cookie) {
  if (request.headers.get("Origin").empty() && !with_cookie) return {};
  if (own_origin(site, request)) return {};
  return fail(forbidden("a page of another site may not open this WebSocket"));
}

bool acceptable_body(const net::Request& request) {
  if (request.body.empty()) return true;
  const std::string type =
      to_lower(trim(request.headers.get("Content-Type")
                        .substr(0, request.headers.get("Content-Type").find(';'))));
  return type == "application/json" || type == "text/yaml" || type == "application/yaml" ||
         type == "application/x-yaml" ||
         (type.starts_with("application/") && (type.ends_with("+json") || type.ends_with("+yaml")));
}

std::string cookie_of(const net::Request& request, std::string_view name) {
  for (const std::string_view line : request.headers.all("Cookie")) {
    for (const std::string& pair : split_nonempty(line, ';')) {
      const std::string_view bare = trim(pair);
      if (bare.size() > name.size() && bare.starts_with(name) && bare[name.size()] == '=')
        return std::string(bare.substr(name.size() + 1));
    }
  }
  return "";
}

std::string set_cookie(const Site& site, std::string_view value, std::int64_t max_age_s) {
  return fmt::format("{}={}; Path=/; Max-Age={}; {}HttpOnly; SameSite=Strict",
                     site.cookie(),
                     value,
                     max_age_s,
                     site.tls ? "Secure; " : "");
}

std::string safe_next(std::string_view next) {
  // Browsers take a backslash for a slash, and leave out tabs and line ends.
  const bool odd = next.find_first_of("\\\t\r\n") != std::string_view::npos;
  return next.starts_with('/') && !next.starts_with("//") && !odd ? std::string(next) : "/";
}

void add_security_headers(net::Headers& headers) {
  headers.set("X-Content-Type-Options", "nosniff");
  headers.set("Referrer-Policy", "same-origin");
  headers.set("Cross-Origin-Opener-Policy", "same-origin");
  headers.set("Cross-Origin-Resource-Policy", "same-origin");
}

net::Response json_answer(int status, std::string body) {
  net::Response response;
  response.status = status;
  response.headers.set("Content-Type", "application/json");
  response.headers.set("Cache-Control", "no-store");
  response.body = std::move(body);
  return response;
}

net::Response error_answer(int status, std::string_view code, std::string_view message) {
  std::string body = R"({"code":)";
  json::append_string(body, code);
  body += R"(,"message":)";
  json::append_string(body, message);
  body += "}\n";
  return json_answer(status, std::move(body));
}

net::Response error_answer(const Error& error) {
  net::Response response =
      error_answer(http_status_of(error.code), reason_of(error.code), error.message);
  if (error.retry_after_s > 0)
    response.headers.set("Retry-After", std::to_string(error.retry_after_s));
  return response;
}

net::Response redirect(std::string location) {
  net::Response response;
  response.status = 302;
  response.headers.set("Location", std::move(location));
  response.headers.set("Cache-Control", "no-store");
  return response;
}

}  // namespace muster::portal
