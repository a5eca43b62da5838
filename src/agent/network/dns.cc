#include "agent/network/dns.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "base/strings.h"
#include "kube/meta.h"
#include "net/loop/other_network.h"

namespace muster::agent {
namespace {

using json::at;

constexpr std::string_view kDomain = ".cluster.local";
constexpr std::uint16_t kTypeA = 1, kTypePtr = 12, kTypeAny = 255;
constexpr int kNoError = 0, kFormatError = 1, kNoSuchName = 3, kRefused = 5;
constexpr Duration kUpstreamPatience = std::chrono::seconds(2);
/// Fits into 512 bytes with any name; enough to find a service.
constexpr std::size_t kAnswersMax = 28;

std::uint16_t number(std::string_view bytes, std::size_t offset) {
  return static_cast<std::uint16_t>(static_cast<unsigned char>(bytes[offset]) << 8 |
                                    static_cast<unsigned char>(bytes[offset + 1]));
}
void put(std::string& out, std::uint32_t value, int bytes) {
  for (int shift = (bytes - 1) * 8; shift >= 0; shift -= 8)
    out += static_cast<char>(value >> shift);
}

struct Question {
  std::string name;
  std::uint16_t type = 0;
  std::size_t end = 0;  // offset behind the question
};

std::optional<Question> parse_question(std::string_view query) {
  Question question;
  std::size_t at_byte = 12;
  for (;;) {
    if (at_byte >= query.size()) return std::nullopt;
    const auto length = static_cast<std::size_t>(static_cast<unsigned char>(query[at_byte]));
    ++at_byte;
    if (length == 0) break;
    if (length > 63 || at_byte + length > query.size() || question.name.size() > 255)
      return std::nullopt;
    if (!question.name.empty()) question.name += '.';
    question.name += to_lower(query.substr(at_byte, length));
    at_byte += length;
  }
  if (at_byte + 4 > query.size()) return std::nullopt;
  question.type = number(query, at_byte);
  question.end = at_byte + 4;
  return question;
}

void add_addresses(const json::Value& endpoints,
                   const std::string& host,
                   std::vector<std::string>& out) {
  for (const auto& subset : json::array_at(endpoints, "subsets")) {
    for (const auto& address : json::array_at(subset, "addresses")) {
      if (!host.empty() && json::string_at(address, "hostname") != host &&
          json::string_at(address, "targetRef", "name") != host)
        continue;
      out.push_back(json::text_at(address, "ip"));
    }
  }
}

}  // namespace

std::string answer_query(std::string_view query, const ResolveName& resolve) {
  if (query.size() < 12 || (static_cast<unsigned char>(query[2]) & 0x80) != 0) return "";
  const auto question = number(query, 4) == 1 ? parse_question(query) : std::nullopt;
  int code = question ? kNoError : kFormatError;
  std::vector<std::string> addresses;
  if (question) {
    const auto& name = question->name;
    if (name == "cluster.local" || name.ends_with(kDomain)) {
      const auto found = name == "cluster.local"
                             ? std::optional(std::vector<std::string>())
                             : resolve(name.substr(0, name.size() - kDomain.size()));
      if (!found) code = kNoSuchName;
      if (found && (question->type == kTypeA || question->type == kTypeAny)) addresses = *found;
    } else {
      // A bare name is the last try of a resolver's search; no name server outside knows it.
      const bool bare = name.find('.') == std::string::npos;
      const bool own = question->type == kTypePtr && name.ends_with(".10.in-addr.arpa");
      code = bare || own ? kNoSuchName : kRefused;
    }
  }
  if (addresses.size() > kAnswersMax) addresses.resize(kAnswersMax);
  std::string out(query.substr(0, 2));
  const unsigned asked = static_cast<unsigned char>(query[2]);
  put(out, 0x84U | (asked & 0x01U), 1);  // answer, authoritative, recursion desired as asked
  put(out, static_cast<std::uint32_t>(code), 1);
  put(out, question ? 1 : 0, 2);
  put(out, static_cast<std::uint32_t>(addresses.size()), 2);
  put(out, 0, 4);
  if (question) out += query.substr(12, question->end - 12);
  for (const auto& address : addresses) {
    in_addr binary{};
    inet_pton(AF_INET, address.c_str(), &binary);
    put(out, 0xc00c, 2);  // the question's name
    put(out, kTypeA, 2);
    put(out, 1, 2);
    put(out, 5, 4);  // seconds to live
    put(out, 4, 2);
    out.append(reinterpret_cast<const char*>(&binary), 4);
  }
  return out;
}

std::optional<std::vector<std::string>> resolve_cluster_name(Context& context,
                                                             const std::string& name,
                                                             const std::string& api_address) {
  namespace res = client::resources;
  if (!name.ends_with(".svc")) return std::nullopt;
  const auto parts = split(name.substr(0, name.size() - 4), '.');
  if (parts.size() == 2 && parts[0] == "kubernetes" && parts[1] == "default")
    return std::vector<std::string>{api_address};
  if (parts.size() != 2 && parts.size() != 3) return std::nullopt;
  const auto& ns = parts.back();
  const auto& service = parts[parts.size() - 2];
  const auto host = parts.size() == 3 ? parts[0] : std::string();
  std::vector<std::string> out;
  const auto object = context.informers.get(res::kServices).find(ns + "/" + service);
  if (object && host.empty()) {
    const auto type = json::string_at(*object, "spec", "type");
    const auto address = json::text_at(*object, "spec", "clusterIP");
    if (context.runtime.translates_addresses() && type != "ExternalName" && !address.empty() &&
        address != "None")
      return std::vector<std::string>{address};
  }
  const auto endpoints = context.informers.get(res::kEndpoints).find(ns + "/" + service);
  if (endpoints) add_addresses(*endpoints, host, out);
  if (!out.empty()) return out;
  // A pod by its own name: below its subdomain, or bare where there is no such service.
  const bool service_exists = object != nullptr;
  const auto pod =
      host.empty() && service_exists
          ? nullptr
          : context.informers.get(res::kPods).find(ns + "/" + (host.empty() ? service : host));
  if (pod && (host.empty() || json::string_at(*pod, "spec", "subdomain") == service)) {
    if (const auto address = json::text_at(*pod, "status", "podIP"); !address.empty())
      out.push_back(address);
    return out;
  }
  if (service_exists && host.empty()) return out;
  return std::nullopt;
}

bool asks_elsewhere(std::string_view query) {
  if (query.size() < 12 || (static_cast<unsigned char>(query[2]) & 0x80) != 0) return false;
  const auto question = number(query, 4) == 1 ? parse_question(query) : std::nullopt;
  if (!question) return false;
  const auto& name = question->name;
  return name != "cluster.local" && !name.ends_with(kDomain) && name.find('.') != name.npos &&
         !(question->type == kTypePtr && name.ends_with(".10.in-addr.arpa"));
}

std::string resolv_conf(const json::Value& pod,
                        const std::string& nameserver,
                        const std::string& machine) {
  const auto policy = json::as_string(at(pod, "spec", "dnsPolicy"), "ClusterFirst");
  const auto& config = at(pod, "spec", "dnsConfig");
  std::vector<std::string> servers, searches, options;
  if (policy == "Default" || (nameserver.empty() && policy != "None")) {
    if (config.is_null()) return machine;
    for (const auto& line : split(machine, '\n')) {
      const auto words = split_nonempty(line, ' ');
      if (words.size() < 2) continue;
      auto& list = words[0] == "nameserver" ? servers : words[0] == "search" ? searches : options;
      if (words[0] == "nameserver" || words[0] == "search" || words[0] == "options")
        list.insert(list.end(), words.begin() + 1, words.end());
    }
  } else if (policy != "None") {
    const auto ns = kube::namespace_of(pod);
    servers = {nameserver};
    searches = {fmt::format("{}.svc.cluster.local", ns), "svc.cluster.local", "cluster.local"};
    options = {"ndots:5"};
  }
  for (const auto& one : json::array_at(config, "nameservers")) servers.push_back(json::text(one));
  for (const auto& one : json::array_at(config, "searches")) searches.push_back(json::text(one));
  for (const auto& one : json::array_at(config, "options")) {
    const auto name = json::text_at(one, "name");
    const auto value = json::text_at(one, "value");
    std::erase_if(options, [&](const std::string& known) {
      return known == name || known.starts_with(name + ":");
    });
    options.push_back(value.empty() ? name : name + ":" + value);
  }
  std::string out;
  if (!searches.empty()) out += fmt::format("search {}\n", fmt::join(searches, " "));
  for (const auto& one : servers) out += fmt::format("nameserver {}\n", one);
  if (!options.empty()) out += fmt::format("options {}\n", fmt::join(options, " "));
  return out;
}

DnsForwarder::~DnsForwarder() {
  if (upstream_) upstream_->close();
}

bool DnsForwarder::start(const std::string& machine_resolv_conf) {
  for (const auto& line : split(machine_resolv_conf, '\n')) {
    const auto words = split_nonempty(line, ' ');
    if (words.size() < 2 || words[0] != "nameserver") continue;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(53);
    if (inet_pton(AF_INET, words[1].c_str(), &address.sin_addr) != 1) continue;
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return false;
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      close(fd);
      continue;
    }
    upstream_ = net::make_descriptor(loop_, fd);
    loop_.spawn(relay(upstream_, traffic_, reply_socket_));
    return true;
  }
  return false;
}

bool DnsForwarder::ask(std::string_view query, const sockaddr_in& peer) {
  const auto now = loop_.monotonic();
  if (traffic_->silent_since == Duration::zero()) traffic_->silent_since = now;
  const bool answers = now - traffic_->silent_since <= kUpstreamPatience;
  const auto id = next_++;
  if (answers) traffic_->asked[id] = {peer, {query[0], query[1]}};
  std::string sent;
  put(sent, id, 2);
  sent += query.substr(2);
  (void)send(upstream_->fd(), sent.data(), sent.size(), MSG_NOSIGNAL);
  return answers;
}

Task<void> DnsForwarder::relay(std::shared_ptr<net::Descriptor> upstream,
                               std::shared_ptr<Traffic> traffic,
                               int reply_socket) {
  for (;;) {
    char buffer[4096];
    const auto got = recv(upstream->fd(), buffer, sizeof buffer, 0);
    if (got >= 12) {
      traffic->silent_since = Duration::zero();
      const auto found = traffic->asked.find(number(std::string_view(buffer, 2), 0));
      if (found == traffic->asked.end()) continue;
      buffer[0] = found->second.id[0];
      buffer[1] = found->second.id[1];
      sendto(reply_socket,
             buffer,
             static_cast<std::size_t>(got),
             0,
             reinterpret_cast<const sockaddr*>(&found->second.peer),
             sizeof found->second.peer);
      traffic->asked.erase(found);
      continue;
    }
    if (got >= 0 || errno == ECONNREFUSED || errno == EINTR) continue;
    const bool open = co_await upstream->readable();
    if (!open) co_return;
  }
}

Result<void> Dns::start() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(53);
  inet_pton(AF_INET, address_.c_str(), &address.sin_addr);
  const int fd = net::open_socket(ntohl(address.sin_addr.s_addr), SOCK_DGRAM);
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return fail(
        Code::kInternal,
        fmt::format(
            "names of services will not resolve: bind {}:53: {}", address_, std::strerror(errno)));
  }
  socket_ = net::make_descriptor(*context_.sockets, fd);
  std::ifstream file("/etc/resolv.conf");
  std::stringstream machine;
  machine << file.rdbuf();
  forwarder_ = std::make_unique<DnsForwarder>(*context_.sockets, fd);
  if (!forwarder_->start(machine.str())) forwarder_.reset();
  context_.loop.spawn(serve(socket_));
  return {};
}

void Dns::stop() {
  forwarder_.reset();
  if (socket_) socket_->close();
}

Task<void> Dns::serve(std::shared_ptr<net::Descriptor> socket) {
  const ResolveName resolve = [this](const std::string& name) {
    return resolve_cluster_name(context_, name, address_);
  };
  for (;;) {
    char buffer[1500];
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    const auto got =
        recvfrom(socket->fd(), buffer, sizeof buffer, 0, reinterpret_cast<sockaddr*>(&peer), &size);
    if (got > 0) {
      const std::string_view query(buffer, static_cast<std::size_t>(got));
      if (forwarder_ && asks_elsewhere(query) && forwarder_->ask(query, peer)) continue;
      const auto answer = answer_query(query, resolve);
      if (!answer.empty())
        sendto(socket->fd(),
               answer.data(),
               answer.size(),
               0,
               reinterpret_cast<sockaddr*>(&peer),
               size);
      continue;
    }
    const bool open = co_await socket->readable();
    if (!open) co_return;
  }
}

}  // namespace muster::agent
