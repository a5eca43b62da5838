/// One client of an API server: a user who works at a steady pace and measures, or one who floods.
///
///   apiserver_client --kubeconfig FILE --token T --namespace NS --work get|create|page --every-us N --count N
///   apiserver_client --kubeconfig FILE --token T --namespace NS --flood get|create|list|pods|watch --connections N
///
/// The first prints one JSON object with its latencies and ends; the second goes on until it is killed and prints a line when it has
/// begun. They are processes of their own, so that neither waits in the other's loop.
#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "json/json.h"
#include "load.h"

namespace {

using namespace muster;

struct User {
  net::Loop loop;
  bench::Target target;
  std::unique_ptr<net::Client> http;
  std::string ns;
  int made = 0;
};

/// What a user asks for, in a namespace of their own; lists are of everybody's pods.
net::Request ask(User& user, std::string_view work) {
  const std::string maps = "/api/v1/namespaces/" + user.ns + "/configmaps";
  if (work == "list") return bench::request(user.target, "GET", "/api/v1/pods");
  if (work == "pods") {
    net::Request patch = bench::request(
        user.target,
        "PATCH",
        "/api/v1/namespaces/load/pods/p-0",
        fmt::format(R"({{"metadata":{{"annotations":{{"n":"{}"}}}}}})", user.made++));
    patch.headers.set("Content-Type", "application/merge-patch+json");
    return patch;
  }
  if (work == "page") return bench::request(user.target, "GET", maps + "?limit=20");
  if (work == "create")
    return bench::request(
        user.target,
        "POST",
        maps,
        fmt::format(R"({{"metadata":{{"generateName":"c-"}},"data":{{"n":"{}","text":"{}"}}}})",
                    user.made++,
                    std::string(400, 'x')));
  return bench::request(user.target, "GET", maps + "/small");
}

Task<void> work(User& user, std::string kind, Duration every, int count) {
  std::vector<double> took;
  int failed = 0;
  for (int i = 0; i < count; ++i) {
    const Duration begun = user.loop.monotonic();
    const auto answer = co_await user.http->request(ask(user, kind));
    const Duration end = user.loop.monotonic();
    if (!answer || answer->status >= 300) {
      if (++failed == 1)
        fmt::print(stderr, "{}\n", answer ? answer->body.substr(0, 300) : answer.error().message);
    } else {
      took.push_back(bench::seconds(end - begun) * 1e3);
    }
    if (end - begun < every) co_await user.loop.sleep(every - (end - begun));
  }
  std::sort(took.begin(), took.end());
  const auto at = [&](std::size_t p) { return took.empty() ? 0 : took[took.size() * p / 100]; };
  fmt::print(R"({{"p50":{:.3f},"p99":{:.3f},"worst":{:.3f},"failed":{}}})"
             "\n",
             at(50),
             at(99),
             took.empty() ? 0 : took.back(),
             failed);
}

/// One connection of a flood: the next request as soon as the last was answered.
Task<void> flood(User& user, std::string kind) {
  while (true) {
    const auto answer = co_await user.http->request(ask(user, kind));
    // Refused or cut: as impolite as a client can be, but not a loop that only burns this machine's processor.
    if (!answer || answer->status >= 400) co_await user.loop.sleep(std::chrono::milliseconds(10));
  }
}

/// A watch of everything that nobody reads.
Task<void> watch_unread(User& user) {
  while (true) {
    auto stream = co_await user.http->stream(
        bench::request(user.target, "GET", "/api/v1/pods?watch=true&allowWatchBookmarks=true"));
    co_await user.loop.sleep(stream ? Duration(std::chrono::hours(1))
                                    : Duration(std::chrono::milliseconds(10)));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bench::Flags flags(argc, argv);
  User user;
  auto target = bench::read_target(flags.text("--kubeconfig"));
  if (!target) return bench::refuse(target.error());
  user.target = std::move(*target);
  user.target.token = flags.text("--token");
  user.ns = flags.text("--namespace");
  const int connections = flags.number("--connections", 1);
  auto http = bench::connect(
      user.loop, user.target, {static_cast<std::size_t>(connections), std::chrono::minutes(5)});
  if (!http) return bench::refuse(http.error());
  user.http = std::move(*http);
  const std::string kind = flags.text("--flood");
  if (kind.empty()) {
    user.loop.run_until_done(work(user,
                                  flags.text("--work"),
                                  std::chrono::microseconds(flags.number("--every-us", 5000)),
                                  flags.number("--count", 1000)));
    return 0;
  }
  for (int i = 0; i < connections; ++i)
    user.loop.spawn(kind == "watch" ? watch_unread(user) : flood(user, kind));
  fmt::print("floods\n");
  std::fflush(stdout);
  user.loop.run();
}
