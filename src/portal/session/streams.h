/// Shells, logs and watches that visitors have open. They end with the session, and when whoever
/// opened them is nobody any more; taken rights are the API server's to see.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/env.h"
#include "base/task.h"
#include "net/http/ending_writer.h"
#include "portal/session/user.h"

namespace muster::portal {

class Streams {
 public:
  /// Who it is now; absent: nobody any more.
  using Recheck = std::function<Task<std::optional<User>>(std::string session, User user)>;
  Streams(Env& env, Recheck recheck) : env_(env), recheck_(std::move(recheck)) {}

  /// One stream, while it is open. `session` empty: a bearer token.
  class Open {
   public:
    Open(Streams& streams, User user, std::string session, net::EndingWriter& writer);
    Open(const Open&) = delete;
    ~Open();

   private:
    friend class Streams;
    Streams& streams_;
    std::uint64_t id_;
    User user_;
    std::string session_;
    net::EndingWriter& writer_;
  };

  void end_session(const std::string& session);
  /// Those without a session.
  void end_user(const std::string& user);

 private:
  template <typename Which>
  void end_if(Which which);
  void look_later();
  Task<void> look();

  Env& env_;
  Recheck recheck_;
  std::map<std::uint64_t, Open*> open_;
  std::uint64_t next_id_ = 0;
  std::unique_ptr<Timer> timer_;
};

}  // namespace muster::portal
