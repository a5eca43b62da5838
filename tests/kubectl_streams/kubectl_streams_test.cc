/// Real kubectl programs talk exec and port-forward to net's framing: the old ones SPDY/3.1 after
/// an upgrade, the new ones WebSocket channels and SPDY inside WebSocket. The server here knows one
/// pod and nothing else.
#include <arpa/inet.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "base/strings.h"
#include "net/http/server.h"
#include "net/loop/loop.h"
#include "net/spdy/spdy.h"

namespace muster::net {
namespace {

constexpr const char* kPod =
    R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"web","namespace":"default","uid":"u"},"spec":{"nodeName":"n","containers":[{"name":"main","image":"x","ports":[{"containerPort":80}]}]},"status":{"phase":"Running"}})";
constexpr const char* kResources =
    R"({"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get","list"],"shortNames":["po"]}]})";
constexpr const char* kSuccess = R"({"metadata":{},"status":"Success"})";
constexpr const char* kExit7 =
    R"({"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}})";

/// Which way each request came, told by the loop's thread.
class Seen {
 public:
  void add(const char* what) {
    const std::lock_guard guard(mutex_);
    text_ += what;
  }
  std::string take() {
    const std::lock_guard guard(mutex_);
    return std::exchange(text_, std::string());
  }

 private:
  std::mutex mutex_;
  std::string text_;
};
Seen seen;

Task<void> answer(ResponseWriter& writer, int status, std::string body) {
  Response response;
  response.status = status;
  response.headers.set("Content-Type", "application/json");
  response.body = std::move(body);
  const auto sent = co_await writer.send(std::move(response));
  (void)sent;
}

Headers spdy_headers(std::string protocol) {
  Headers headers;
  headers.set("Upgrade", "SPDY/3.1");
  headers.set("X-Stream-Protocol-Version", std::move(protocol));
  return headers;
}

/// exec over SPDY: echoes stdin to stdout, says "bye" on stderr, ends with the status.
Task<void> exec_spdy(Loop& loop, Target target, ResponseWriter& writer) {
  seen.add("exec-spdy ");
  auto headers = spdy_headers("v4.channel.k8s.io");
  auto raw = co_await writer.upgrade_raw(std::move(headers));
  if (!raw) co_return;
  const auto session = make_spdy_session(loop, std::move(*raw), SpdyRole::kServer);
  std::map<std::string, std::shared_ptr<SpdyStream>> streams;
  const std::size_t want = 1 + (target.get("stdin") == "true") + (target.get("stdout") == "true") +
                           (target.get("stderr") == "true");
  while (streams.size() < want) {
    auto stream = co_await session->accept();
    if (!stream) co_return;
    auto type = std::string(stream->headers().get("streamtype"));
    streams[type] = std::move(stream);
  }
  if (streams.contains("stdin")) {
    while (true) {
      auto piece = co_await streams["stdin"]->read();
      if (!piece || piece->empty()) break;
      const auto ok = co_await streams["stdout"]->write(std::move(*piece));
      if (!ok) co_return;
    }
  }
  auto ok = co_await streams["stderr"]->write("bye\n");
  ok = co_await streams["error"]->write(target.get("command") == "fail" ? kExit7 : kSuccess);
  for (auto& [type, stream] : streams) ok = co_await stream->finish();
  co_await session->shutdown();
}

/// The same over WebSocket channels, version 5.
Task<void> exec_websocket(Loop& loop, Target target, ResponseWriter& writer) {
  seen.add("exec-websocket ");
  auto socket = co_await writer.upgrade_websocket("v5.channel.k8s.io");
  if (!socket) co_return;
  // As long as a process takes to start. kubectl (seen in 1.30 to 1.33) reads before it has made
  // its streams and discards what comes at once, the exit code too ("Unknown stream id 3").
  co_await loop.sleep(std::chrono::milliseconds(50));
  const auto send = [&](char channel, std::string data) -> Task<Result<void>> {
    WebSocket::Message message;
    message.data = std::string(1, channel) + data;
    const auto ok = co_await (*socket)->write(std::move(message));
    co_return ok;
  };
  while (target.get("stdin") == "true") {
    auto message = co_await (*socket)->read();
    if (!message || !*message) co_return;
    const auto& data = (*message)->data;
    if (data == std::string("\xff\x00", 2)) break;
    if (data.size() < 2 || data[0] != 0) continue;
    const auto ok = co_await send(1, data.substr(1));
    if (!ok) co_return;
  }
  auto ok = co_await send(2, "bye\n");
  ok = co_await send(3, target.get("command") == "fail" ? kExit7 : kSuccess);
  co_await (*socket)->close(1000, "");
}

/// port-forward: every data stream is an echo of what is sent, in upper case.
Task<void> serve_forward(Loop& loop, std::shared_ptr<SpdySession> session) {
  while (true) {
    const auto stream = co_await session->accept();
    if (!stream) co_return;
    if (stream->headers().get("streamtype") == "error") {
      const auto ok = co_await stream->finish();
      (void)ok;
      continue;
    }
    loop.spawn([](std::shared_ptr<SpdyStream> s, std::shared_ptr<SpdySession>) -> Task<void> {
      while (true) {
        auto piece = co_await s->read();
        if (!piece || piece->empty()) break;
        for (auto& c : *piece) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
        const auto ok = co_await s->write(std::move(*piece));
        if (!ok) break;
      }
      const auto ok = co_await s->finish();
      (void)ok;
    }(stream, session));
  }
}

Task<void> forward(Loop& loop, const Request& request, ResponseWriter& writer) {
  const bool tunnelled = to_lower(request.headers.get("Upgrade")) == "websocket";
  seen.add(tunnelled ? "forward-websocket " : "forward-spdy ");
  std::unique_ptr<ByteStream> bytes;
  if (tunnelled) {
    auto socket = co_await writer.upgrade_websocket("SPDY/3.1+portforward.k8s.io");
    if (!socket) co_return;
    bytes = make_websocket_bytes(loop, std::move(*socket));
  } else {
    auto headers = spdy_headers("portforward.k8s.io");
    auto raw = co_await writer.upgrade_raw(std::move(headers));
    if (!raw) co_return;
    bytes = std::move(*raw);
  }
  const std::shared_ptr<SpdySession> session =
      make_spdy_session(loop, std::move(bytes), SpdyRole::kServer);
  co_await serve_forward(loop, session);
}

Handler pod_server(Loop& loop) {
  return [&loop](Request request, ResponseWriter& writer) -> Task<void> {
    const auto target = parse_target(request.target);
    if (!target) co_return;
    const bool websocket = to_lower(request.headers.get("Upgrade")) == "websocket";
    if (target->path == "/api") {
      co_await answer(writer, 200, R"({"kind":"APIVersions","versions":["v1"]})");
    } else if (target->path == "/apis") {
      co_await answer(writer, 200, R"({"kind":"APIGroupList","apiVersion":"v1","groups":[]})");
    } else if (target->path == "/api/v1") {
      co_await answer(writer, 200, kResources);
    } else if (target->path == "/version" || target->path == "/version/") {
      co_await answer(writer, 200, R"({"major":"1","minor":"30","gitVersion":"v1.30.0"})");
    } else if (target->path.ends_with("/pods/web")) {
      co_await answer(writer, 200, kPod);
    } else if (target->path.ends_with("/exec")) {
      if (websocket) {
        co_await exec_websocket(loop, *target, writer);
      } else {
        co_await exec_spdy(loop, *target, writer);
      }
    } else if (target->path.ends_with("/portforward")) {
      co_await forward(loop, request, writer);
    } else {
      co_await answer(
          writer,
          404,
          R"({"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404})");
    }
  };
}

struct Ran {
  int code = -1;
  std::string out;
};

Ran shell(const std::string& command) {
  Ran ran;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return ran;
  char buffer[65536];
  while (const auto got = ::fread(buffer, 1, sizeof buffer, pipe)) ran.out.append(buffer, got);
  const int status = ::pclose(pipe);
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}

std::vector<std::string> kubectls() {
  std::vector<std::string> found;
  for (const auto* path : {"/usr/bin/kubectl", "/usr/local/bin/kubectl"}) {
    if (std::filesystem::exists(path)) found.emplace_back(path);
  }
  const std::string more = "/usr/lib/google-cloud-sdk/bin";
  if (std::filesystem::exists(more)) {
    for (const auto& entry : std::filesystem::directory_iterator(more)) {
      if (entry.path().filename().string().starts_with("kubectl."))
        found.push_back(entry.path().string());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

/// The loop serves on its own thread while the test drives kubectl.
class KubectlStreams : public testing::Test {
 protected:
  KubectlStreams() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "muster-kubectl-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    auto made = listen(loop_, ServerOptions{}, pod_server(loop_));
    EXPECT_TRUE(made);
    server_ = std::move(*made);
    port_ = server_->port();
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~KubectlStreams() override {
    loop_.stop();
    thread_.join();
    loop_.run_until_done([](Server& s) -> Task<void> { co_await s.stop(); }(*server_));
    std::filesystem::remove_all(folder_);
  }
  std::string command(const std::string& kubectl, const std::string& arguments) const {
    return fmt::format(
        "HOME={0} timeout 30 {1} --kubeconfig=/dev/null --cache-dir={0}/cache --server=http://127.0.0.1:{2} {3}",
        folder_,
        kubectl,
        port_,
        arguments);
  }

  Loop loop_;
  std::unique_ptr<Server> server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
  std::string folder_;
};

TEST_F(KubectlStreams, ExecCarriesInputOutputAndExitCode) {
  const auto programs = kubectls();
  if (programs.empty()) GTEST_SKIP() << "no kubectl on this machine";
  // Larger than any window; checked by its sum.
  const auto input = folder_ + "/input";
  {
    std::ofstream file(input);
    for (int i = 0; i < 300'000; ++i) file << i << "\n";
  }
  const auto want = shell(fmt::format("sha256sum < {}", input)).out;
  for (const auto& kubectl : programs) {
    const auto echoed = shell(command(
        kubectl, fmt::format("exec -i web -- cat < {} 2>{}/err | sha256sum", input, folder_)));
    const auto errors = shell(fmt::format("cat {}/err", folder_)).out;
    EXPECT_EQ(echoed.out, want) << kubectl << ": " << errors;
    EXPECT_NE(errors.find("bye"), std::string::npos) << kubectl << ": " << errors;
    const auto failed =
        shell(command(kubectl, fmt::format("exec -v=8 web -- fail 2>{}/err", folder_)));
    EXPECT_EQ(failed.code, 7) << kubectl << ": "
                              << shell(fmt::format("tail -n 30 {}/err", folder_)).out;
    fmt::print("{}: {}\n", kubectl, seen.take());
  }
}

/// Sends a line through 127.0.0.1:port and returns the answer; empty while nobody listens.
std::string ask(std::uint16_t port, const std::string& text) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) {
    std::thread sender([fd, &text] {
      std::string_view left = text;
      while (!left.empty()) {
        const auto sent = ::send(fd, left.data(), left.size(), MSG_NOSIGNAL);
        if (sent <= 0) break;
        left.remove_prefix(static_cast<std::size_t>(sent));
      }
      ::shutdown(fd, SHUT_WR);
    });
    char buffer[65536];
    while (true) {
      const auto got = ::recv(fd, buffer, sizeof buffer, 0);
      if (got <= 0) break;
      answer.append(buffer, static_cast<std::size_t>(got));
    }
    sender.join();
  }
  ::close(fd);
  return answer;
}

TEST_F(KubectlStreams, PortForwardCarriesManyConnections) {
  const auto programs = kubectls();
  if (programs.empty()) GTEST_SKIP() << "no kubectl on this machine";
  for (const auto& kubectl : programs) {
    // kubectl picks a free port and says which.
    FILE* pipe =
        ::popen(command(kubectl, "port-forward pod/web :80 & echo \"pid $!\"; wait").c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    int port = 0, pid = 0;
    char line[512];
    while (port == 0 && ::fgets(line, sizeof line, pipe) != nullptr) {
      ::sscanf(line, "pid %d", &pid);
      ::sscanf(line, "Forwarding from 127.0.0.1:%d", &port);
    }
    EXPECT_GT(port, 0) << kubectl;
    if (port > 0) {
      EXPECT_EQ(ask(static_cast<std::uint16_t>(port), "hello"), "HELLO") << kubectl;
      const auto large = ask(static_cast<std::uint16_t>(port), std::string(2'000'000, 'q'));
      EXPECT_TRUE(large == std::string(2'000'000, 'Q')) << kubectl << ": " << large.size();
      for (int i = 0; i < 20; ++i)
        EXPECT_EQ(ask(static_cast<std::uint16_t>(port), fmt::format("n{}", i)),
                  fmt::format("N{}", i))
            << kubectl;
    }
    if (pid > 0) ::kill(pid, SIGTERM);
    ::pclose(pipe);
    fmt::print("{}: {}\n", kubectl, seen.take());
  }
}

}  // namespace
}  // namespace muster::net
