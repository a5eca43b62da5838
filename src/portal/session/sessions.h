/// Sessions of people who signed in. The cookie is 256 random bits that only the browser keeps; here
/// and in the cluster there is its hash. Each session is a Secret, so a restart ends none, and one
/// that was ended does not come back.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "client/client.h"
#include "portal/session/user.h"

namespace muster::portal {

struct Session {
  std::string id;    // names it to its owner; says nothing of the cookie
  std::string hash;  // of the cookie, hex
  User user;
  std::string from, agent;
  Time began, seen, saved;
  Time ends;     // the latest
  Time checked;  // when the rights were looked up; not kept, so that a restart looks again
  int sockets = 0;
};

class Sessions {
 public:
  Sessions(Env& env, client::Client& client) : env_(env), client_(client) {}

  /// Reads what a former process kept, once.
  Task<void> load();
  struct Opened {
    std::string cookie;
    std::string id;
  };
  /// `ends` zero: after the longest time a session may last.
  Task<Result<Opened>> open(User user, std::string from, std::string agent, Time ends);
  /// Null when there is none, or no more. Counts as use.
  Session* find(const std::string& cookie);
  Session* by_id(const std::string& id);
  Task<void> end(std::string id);
  /// All of a user's but one.
  Task<void> end_user(std::string user, std::string but_id);
  [[nodiscard]] bool empty() const { return by_hash_.empty(); }
  [[nodiscard]] std::vector<const Session*> of_user(const std::string& user) const;
  /// By user: when one of their sessions was last used.
  [[nodiscard]] std::map<std::string, Time> last_seen() const;
  /// Rights that were looked up anew just now.
  void set_user(const std::string& id, User user);
  /// The password is changed from here: the session goes on with the new one.
  void forget_credential(const std::string& id);

  /// Told when a session ends, so that its sockets do.
  std::function<void(const std::string& id)> on_end;

  static constexpr Duration kIdleMax = std::chrono::hours(12);
  static constexpr Duration kWholeMax = std::chrono::hours(24 * 7);

 private:
  [[nodiscard]] bool alive(const Session& session, Time now) const;
  void save_soon(Session& session);

  static constexpr std::size_t kMax = 10'000;
  static constexpr std::size_t kUserMax = 64;

  Env& env_;
  client::Client& client_;
  bool loaded_ = false;
  std::map<std::string, std::unique_ptr<Session>> by_hash_;
};

/// The Secret of a session, and back; absent when it is none of ours.
json::Value secret_of(const Session& session);
std::unique_ptr<Session> session_of(const json::Value& secret);

}  // namespace muster::portal
