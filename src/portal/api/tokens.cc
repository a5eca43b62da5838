/// tokens: a person's tokens for programs. A token itself is shown once, when it is made; later it is
/// named by a part of its hash.
#include <fmt/core.h>

#include "base/log.h"
#include "base/strings.h"
#include "net/tls/tls.h"
#include "portal/api/api.h"

namespace muster::portal {
namespace {

std::string name_of_token(std::string_view token) {
  std::string hex;
  for (const char byte : net::sha256(token).substr(0, 8))
    hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

json::Value claims_of(const std::string& token) {
  const std::vector<std::string> parts = split(token, '.');
  if (parts.size() != 3) return nullptr;
  auto claims = json::parse(base64url_decode(parts[1]).value_or(""));
  return claims ? std::move(*claims) : json::Value(nullptr);
}

Task<Result<std::vector<std::string>>> own_tokens(World& world, const User& user) {
  const auto listed = co_await world.options.rest_call(user, "GET", "/api/v2/tokens", "", "");
  if (!listed) co_return fail(listed.error());
  const auto value = json::parse(listed->body);
  if (listed->status >= 300 || !value)
    co_return fail(code_of("", listed->status),
                   value ? json::text_at(*value, "message") : "the tokens cannot be read");
  std::vector<std::string> tokens;
  for (const json::Value& token : json::array_at(*value, "tokens"))
    tokens.push_back(json::text(token));
  co_return tokens;
}

json::Value row_of(const std::string& token, const json::Value& notes) {
  const json::Value claims = claims_of(token);
  const std::int64_t expires = json::int_at(claims, "exp");
  return {{"id", name_of_token(token)},
          {"application", json::bool_at(claims, "application")},
          {"note", json::text_at(notes, name_of_token(token))},
          {"created", json::int_at(claims, "iat") * 1000},
          {"expires", expires == 0 ? json::Value(nullptr) : json::Value(expires * 1000)}};
}

/// What the token is for, as its owner says.
std::string note_of(const std::string& body) {
  const auto value = json::parse(body);
  return value ? json::text_at(*value, "note").substr(0, 60) : "";
}

/// Of those tokens that are still there.
Task<void> keep_note(World& world, std::string user, std::string name, std::string note) {
  const auto kept = co_await read_kept(world, user, "tokens");
  const auto tokens = co_await own_tokens(world, {.name = user});
  json::Object notes;
  if (kept && tokens) {
    for (const std::string& token : *tokens) {
      const std::string here = name_of_token(token);
      if (const std::string old = json::text_at(*kept, here); !old.empty()) notes[here] = old;
    }
  }
  notes[name] = note;
  const auto written = co_await write_kept(world, user, "tokens", std::move(notes));
  if (!written) log::warn("portal", "a token's note is not kept: {}", written.error().message);
}

}  // namespace

Task<void> serve_tokens(ApiWorld api, ApiCall call) {
  World& world = api.world;
  const User& user = call.visitor.user;
  const std::string& method = call.request.method;
  if (method == "POST" && call.path.size() == 1) {
    const auto made =
        co_await world.options.rest_call(user, "POST", "/api/v2/tokens/application", "", "");
    if (!made) {
      co_await answer_error(call.writer, made.error());
      co_return;
    }
    const auto token = json::parse(made->body);
    if (const std::string note = note_of(call.request.body); token && !note.empty())
      co_await keep_note(world, user.name, name_of_token(json::string_at(*token, "token")), note);
    co_await answer(call.writer, json_answer(made->status, made->body));
    co_return;
  }
  const auto tokens = co_await own_tokens(world, user);
  if (!tokens) {
    co_await answer_error(call.writer, tokens.error());
    co_return;
  }
  if (method == "GET" && call.path.size() == 1) {
    json::Array rows;
    const auto notes = co_await read_kept(world, user.name, "tokens");
    if (!notes) {
      co_await answer_error(call.writer, notes.error());
      co_return;
    }
    // The one by which the portal itself asks is no business of theirs.
    for (const std::string& token : *tokens) {
      json::Value row = row_of(token, *notes);
      if (json::bool_at(row, "application")) rows.push_back(std::move(row));
    }
    co_await answer_json(call.writer, std::move(rows));
    co_return;
  }
  if (method == "DELETE" && call.path.size() == 2) {
    for (const std::string& token : *tokens) {
      if (name_of_token(token) != call.path[1]) continue;
      const auto gone =
          co_await world.options.rest_call(user, "DELETE", "/api/v2/tokens/" + token, "", "");
      if (!gone)
        co_await answer_error(call.writer, gone.error());
      else
        co_await answer(call.writer, json_answer(gone->status, gone->body));
      co_return;
    }
  }
  co_await answer(call.writer, error_answer(404, "NotFound", "there is no such token of yours"));
}

}  // namespace muster::portal
