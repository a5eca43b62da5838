/// All open tabs: one WebSocket each, with numbered subscriptions. What changes is gathered and told
/// at most four times a second; a tab that does not keep up is told to subscribe anew, and one that
/// is worse is closed.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/env.h"
#include "base/gate.h"
#include "net/http/http.h"
#include "portal/live/protocol.h"
#include "portal/live/source.h"
#include "portal/session/user.h"

namespace muster::portal {

class Hub {
 public:
  /// The source of a topic for a user, or why there is none.
  using Open =
      std::function<Task<Result<SourcePtr>>(User user, std::string topic, json::Value query)>;
  /// Who it is now: sockets outlive changes of rights. Absent: nobody any more.
  using Recheck = std::function<Task<std::optional<User>>(std::string session_id, User user)>;

  Hub(Env& env, Open open, Recheck recheck, std::string build);

  struct Visitor {
    User user;
    std::string session;  // id; empty: a bearer token
  };
  /// Until the tab closes.
  Task<void> serve(std::shared_ptr<net::WebSocket> socket, Visitor visitor);
  [[nodiscard]] int sockets_of(const std::string& session) const;
  [[nodiscard]] std::size_t sockets() const { return tabs_.size(); }

  /// Something changed: whoever shows it is told soon.
  void poke();
  /// Ends the tabs of a session, or of a user, with 4401.
  void end_session(const std::string& session);
  Task<void> stop();

  static constexpr int kSocketsMax = 32;

 private:
  struct Subscription {
    SourcePtr source;
    std::string shared;  // Source::shared_as
    Window window;
    ShownPtr shown;
    std::uint64_t version = 0;
    std::shared_ptr<const std::string> value;  // told last
  };
  struct Tab {
    std::shared_ptr<net::WebSocket> socket;
    Visitor visitor;
    std::map<std::int64_t, Subscription> subscriptions;
    std::list<std::string> unsent;
    std::size_t unsent_bytes = 0;
    std::unique_ptr<Signal> wake;
    bool closing = false;
    std::uint16_t code = 1000;
    std::string why;
  };
  using TabPtr = std::shared_ptr<Tab>;
  using TextPtr = std::shared_ptr<const std::string>;

  /// What one round of telling has made, for the tabs after the first that shows it.
  struct Round {
    struct Page {
      ShownPtr shown;
      SourcePtr source;  // that made it, and can write its rows
    };
    std::map<std::tuple<std::string, std::size_t, std::size_t>, Page> pages;
    std::map<std::pair<const ShownPage*, const ShownPage*>, TextPtr> differences;
    std::map<std::string, TextPtr> values;
    std::vector<ShownPtr> former;
  };

  Task<void> read(TabPtr tab);
  Task<void> write(TabPtr tab);
  Task<void> watch_rights(TabPtr tab);
  Task<void> take(TabPtr tab, std::string text);
  Task<void> subscribe(TabPtr tab, Said said);
  void say(Tab& tab, std::string text);
  void refuse(Tab& tab, std::int64_t sub, const Error& error);
  void close(Tab& tab, std::uint16_t code, std::string why);
  void tell_all();
  void tell(Tab& tab, Round& round);
  /// False: it is to be dropped.
  bool tell_one(Tab& tab, std::int64_t number, Subscription& subscription, Round& round);
  Round::Page page_of(const Subscription& subscription, Round& round);
  TextPtr value_of(const Subscription& subscription, Round& round);
  [[nodiscard]] Millis now() { return env_.now().us / 1000; }

  static constexpr std::size_t kSubscriptionsMax = 16;
  static constexpr std::size_t kUnsentMax = 1024 * 1024;

  Env& env_;
  Open open_;
  Recheck recheck_;
  std::string build_;
  Gate gate_;
  std::list<TabPtr> tabs_;
  std::unique_ptr<Timer> timer_, again_;
  Duration told_{};
};

}  // namespace muster::portal
