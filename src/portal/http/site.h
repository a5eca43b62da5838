/// Where the portal is served, and who may talk to it: names it answers to, requests that another
/// site's page may not send, headers that go with every answer. Pure.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/http/http.h"

namespace muster::portal {

struct Site {
  bool tls = false;
  bool plain_public = false;  // plain HTTP for others than this machine, as was asked for
  std::set<std::string, std::less<>> hosts;  // lower case, without port
  std::string prefix;                        // "" or "/x"
  [[nodiscard]] std::string_view scheme() const { return tls ? "https" : "http"; }
  [[nodiscard]] std::string_view cookie() const { return tls ? "__Host-muster" : "muster"; }
};

/// The main document's policy, and that of the terminal's document, which styles itself.
extern const std::string_view kPolicy;
extern const std::string_view kTerminalPolicy;

/// "a.b:80" and "[::1]:80" without the port, in lower case.
std::string host_name(std::string_view host);
bool host_accepted(const Site& site, const net::Request& request);
/// Loopback addresses and "localhost" need no TLS.
bool is_loopback(std::string_view address);

/// Forbidden when the request may come from another site's page. With a cookie: reads always pass;
/// what changes something must be of the same origin and say so.
Result<void> check_origin(const Site& site, const net::Request& request);
/// The same for a WebSocket, where pages of others are not held back by the browser. Without a
/// cookie a missing Origin is fine: no browser sent it.
Result<void> check_socket_origin(const Site& site, const net::Request& request, bool with_cookie);
/// JSON or YAML, nothing that a form could send.
bool acceptable_body(const net::Request& request);

/// The value of a cookie; empty when there is none.
std::string cookie_of(const net::Request& request, std::string_view name);
std::string set_cookie(const Site& site, std::string_view value, std::int64_t max_age_s);

/// A same-origin path to go on to after signing in; "/" for everything else.
std::string safe_next(std::string_view next);

void add_security_headers(net::Headers& headers);
net::Response json_answer(int status, std::string body);
net::Response error_answer(int status, std::string_view code, std::string_view message);
net::Response error_answer(const Error& error);
/// 302.
net::Response redirect(std::string location);

}  // namespace muster::portal
