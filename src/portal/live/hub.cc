#include "portal/live/hub.h"

#include <fmt/core.h>

#include <algorithm>

#include "json/text.h"

namespace muster::portal {
namespace {

constexpr Duration kBetween = std::chrono::milliseconds(250);
constexpr Duration kPing = std::chrono::seconds(20);
constexpr Duration kRights = std::chrono::seconds(30);
constexpr std::uint16_t kSessionEnded = 4401, kTooSlow = 4408;

std::string sub_member(std::int64_t number) { return fmt::format("\"sub\":{},", number); }

}  // namespace

Hub::Hub(Env& env, Open open, Recheck recheck, std::string build)
    : env_(env),
      open_(std::move(open)),
      recheck_(std::move(recheck)),
      build_(std::move(build)),
      gate_(env) {}

Task<void> Hub::serve(std::shared_ptr<net::WebSocket> socket, Visitor visitor) {
  const Gate::Pass pass(gate_);
  auto tab = std::make_shared<Tab>();
  tab->socket = std::move(socket);
  tab->visitor = std::move(visitor);
  tab->wake = env_.make_signal();
  tabs_.push_back(tab);
  std::string hello = fmt::format(R"({{"hello":{{"build":"{}","user":)", build_);
  json::append_string(hello, tab->visitor.user.name);
  say(*tab, hello + fmt::format(R"(,"at":{}}}}})", now()));
  poke();
  env_.spawn(write(tab));
  env_.spawn(watch_rights(tab));
  co_await read(tab);
  close(*tab, 1000, "");
  tab->subscriptions.clear();
  tabs_.remove(tab);
}

int Hub::sockets_of(const std::string& session) const {
  return static_cast<int>(std::count_if(tabs_.begin(), tabs_.end(), [&](const TabPtr& tab) {
    return tab->visitor.session == session && !session.empty();
  }));
}

Task<void> Hub::read(TabPtr tab) {
  while (!tab->closing) {
    auto message = co_await tab->socket->read();
    if (!message || !*message) co_return;
    co_await take(tab, std::move((*message)->data));
  }
}

Task<void> Hub::take(TabPtr tab, std::string text) {
  std::int64_t number = -1;
  auto said = parse_said(text, &number);
  if (!said) {
    refuse(*tab, number, said.error());
    co_return;
  }
  if (said->what == Said::What::kUnsubscribe) {
    tab->subscriptions.erase(said->sub);
    co_return;
  }
  if (said->what == Said::What::kSubscribe) {
    co_await subscribe(tab, std::move(*said));
    co_return;
  }
  const auto found = tab->subscriptions.find(said->sub);
  if (found == tab->subscriptions.end()) {
    refuse(*tab,
           said->sub,
           Error{.code = Code::kNotFound, .message = "there is no such subscription"});
    co_return;
  }
  Subscription& subscription = found->second;
  subscription.window = said->window;
  subscription.version = subscription.source->version();
  ShownPage shown;
  say(*tab,
      snapshot_text(*subscription.source, said->window, now(), &shown, sub_member(said->sub)));
  subscription.shown = std::make_shared<const ShownPage>(std::move(shown));
}

Task<void> Hub::subscribe(TabPtr tab, Said said) {
  tab->subscriptions.erase(said.sub);
  if (tab->subscriptions.size() >= kSubscriptionsMax) {
    refuse(*tab,
           said.sub,
           Error{.code = Code::kTooManyRequests,
                 .message = fmt::format("a tab has at most {} subscriptions", kSubscriptionsMax)});
    co_return;
  }
  auto source = co_await open_(tab->visitor.user, said.topic, said.query);
  if (!source) {
    refuse(*tab, said.sub, source.error());
    co_return;
  }
  if (tab->closing) co_return;
  Subscription subscription;
  subscription.source = std::move(*source);
  subscription.shared = subscription.source->shared_as();
  subscription.window = said.window;
  subscription.version = subscription.source->version();
  if (!subscription.source->windowed()) {
    subscription.value = std::make_shared<const std::string>(subscription.source->value());
    say(*tab,
        fmt::format("{{{}{},\"value\":{}}}",
                    sub_member(said.sub),
                    answer_head(subscription.version, now()),
                    *subscription.value));
  } else {
    ShownPage shown;
    say(*tab,
        snapshot_text(*subscription.source, said.window, now(), &shown, sub_member(said.sub)));
    subscription.shown = std::make_shared<const ShownPage>(std::move(shown));
  }
  tab->subscriptions[said.sub] = std::move(subscription);
}

void Hub::say(Tab& tab, std::string text) {
  if (tab.closing) return;
  tab.unsent_bytes += text.size();
  tab.unsent.push_back(std::move(text));
  tab.wake->notify();
}

void Hub::refuse(Tab& tab, std::int64_t sub, const Error& error) {
  std::string text =
      fmt::format(R"({{"sub":{},"error":{{"code":"{}","message":)", sub, reason_of(error.code));
  json::append_string(text, error.message);
  say(tab, text + "}}");
  // Somebody who only makes mistakes and never reads the answers.
  if (tab.unsent_bytes > kUnsentMax) close(tab, kTooSlow, "too much is unsent");
}

void Hub::close(Tab& tab, std::uint16_t code, std::string why) {
  if (tab.closing) return;
  tab.closing = true;
  tab.code = code;
  tab.why = std::move(why);
  tab.wake->notify();
}

Task<void> Hub::write(TabPtr tab) {
  const Gate::Pass pass(gate_);
  while (!tab->closing) {
    if (tab->unsent.empty()) {
      const bool woken = co_await tab->wake->wait(kPing);
      if (!woken && !tab->closing) say(*tab, fmt::format(R"({{"ping":{}}})", now()));
      continue;
    }
    std::string text = std::move(tab->unsent.front());
    tab->unsent.pop_front();
    tab->unsent_bytes -= text.size();
    const auto sent = co_await tab->socket->write({.binary = false, .data = std::move(text)});
    if (!sent) close(*tab, 1000, "");
  }
  tab->unsent.clear();
  co_await tab->socket->close(tab->code, tab->why);
}

Task<void> Hub::watch_rights(TabPtr tab) {
  const Gate::Pass pass(gate_);
  const auto pause = env_.make_signal();
  const Gate::Sleeper sleeper(gate_, *pause);
  Duration waited{};
  while (!tab->closing) {
    // In short steps, so that a closed tab is not kept for long.
    constexpr Duration kStep = std::chrono::seconds(2);
    co_await pause->wait(kStep);
    waited += kStep;
    if (tab->closing || gate_.closed() || waited < kRights) {
      if (gate_.closed()) co_return;
      continue;
    }
    waited = Duration::zero();
    auto user = co_await recheck_(tab->visitor.session, tab->visitor.user);
    if (!user) {
      close(*tab, kSessionEnded, "signed out");
    } else if (user->groups != tab->visitor.user.groups || user->admin != tab->visitor.user.admin) {
      close(*tab, kSessionEnded, "rights have changed");
    }
  }
}

void Hub::poke() {
  if (timer_ || tabs_.empty()) return;
  const Duration since = env_.monotonic() - told_;
  timer_ = env_.after(since >= kBetween ? Duration(1000) : kBetween - since, [this] {
    timer_.reset();
    tell_all();
  });
}

void Hub::tell_all() {
  told_ = env_.monotonic();
  Round round;
  for (const TabPtr& tab : tabs_) tell(*tab, round);
  // Some sources show what is new only now and then: the last of it is not left out.
  again_ = env_.after(std::chrono::seconds(1), [this] { tell_all(); });
  if (tabs_.empty()) again_.reset();
}

void Hub::tell(Tab& tab, Round& round) {
  if (tab.closing) return;
  for (auto at = tab.subscriptions.begin(); at != tab.subscriptions.end();) {
    if (tell_one(tab, at->first, at->second, round)) {
      ++at;
    } else {
      say(tab, fmt::format(R"({{"sub":{},"gone":true}})", at->first));
      at = tab.subscriptions.erase(at);
    }
  }
}

Hub::Round::Page Hub::page_of(const Subscription& subscription, Round& round) {
  const auto make = [&] {
    return Round::Page{
        std::make_shared<const ShownPage>(subscription.source->page(subscription.window)),
        subscription.source};
  };
  if (subscription.shared.empty()) return make();
  Round::Page& page =
      round.pages[{subscription.shared, subscription.window.first, subscription.window.end}];
  if (!page.shown) page = make();
  return page;
}

Hub::TextPtr Hub::value_of(const Subscription& subscription, Round& round) {
  if (subscription.shared.empty())
    return std::make_shared<const std::string>(subscription.source->value());
  TextPtr& value = round.values[subscription.shared];
  if (!value) value = std::make_shared<const std::string>(subscription.source->value());
  return value;
}

bool Hub::tell_one(Tab& tab, std::int64_t number, Subscription& subscription, Round& round) {
  Source& source = *subscription.source;
  const std::uint64_t version = source.version();
  if (version == subscription.version) return true;
  if (source.gone() || tab.unsent_bytes > kUnsentMax) return false;
  subscription.version = version;
  if (source.windowed()) {
    const Round::Page page = page_of(subscription, round);
    TextPtr& text = round.differences[{subscription.shown.get(), page.shown.get()}];
    if (!text)
      text = std::make_shared<const std::string>(
          difference_text(*page.source, *subscription.shown, *page.shown, now()));
    // Kept by the round as well, so that no other page gets the address of this one.
    round.former.push_back(std::exchange(subscription.shown, page.shown));
    if (!text->empty()) say(tab, "{" + sub_member(number) + *text);
    return true;
  }
  if (auto patch = source.patch(); patch) {
    // What was told is compared with the next value, and not kept by sources that tell differences.
    subscription.value.reset();
    if (!patch->empty())
      say(tab,
          fmt::format(
              "{{{}{},\"patch\":{}}}", sub_member(number), answer_head(version, now()), *patch));
    return true;
  }
  TextPtr value = value_of(subscription, round);
  if (subscription.value && *value == *subscription.value) return true;
  say(tab,
      fmt::format(
          "{{{}{},\"value\":{}}}", sub_member(number), answer_head(version, now()), *value));
  subscription.value = std::move(value);
  return true;
}

void Hub::end_session(const std::string& session) {
  for (const TabPtr& tab : tabs_) {
    if (tab->visitor.session == session && !session.empty())
      close(*tab, kSessionEnded, "signed out");
  }
}

Task<void> Hub::stop() {
  gate_.close();
  timer_.reset();
  again_.reset();
  for (const TabPtr& tab : tabs_) close(*tab, 1001, "the server stops");
  const bool empty = co_await gate_.wait_empty(std::chrono::seconds(6));
  (void)empty;
}

}  // namespace muster::portal
