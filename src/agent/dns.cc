#include "agent/dns.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/strings.h"
#include "kube/meta.h"

namespace muster::agent {
namespace {

using json::at;

constexpr std::string_view kDomain = ".cluster.local";
constexpr std::uint16_t kTypeA = 1, kTypePtr = 12, kTypeAny = 255;
constexpr int kNoError = 0, kFormatError = 1, kNoSuchName = 3, kRefused = 5;
constexpr std::size_t kAnswersMax =
    28;  // fits into 512 bytes with any name; enough to find a service

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
  for (const auto& subset : json::as_array(at(endpoints, "subsets"))) {
    for (const auto& address : json::as_array(at(subset, "addresses"))) {
      if (!host.empty() && json::as_string(at(address, "hostname")) != host &&
          json::as_string(at(address, "targetRef", "name")) != host)
        continue;
      out.push_back(json::text(at(address, "ip")));
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
      code =
          question->type == kTypePtr && name.ends_with(".10.in-addr.arpa") ? kNoSuchName : kRefused;
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
  const auto endpoints = context.informers.get(res::kEndpoints).find(ns + "/" + service);
  if (endpoints) add_addresses(*endpoints, host, out);
  if (!out.empty()) return out;
  // A pod by its own name: below its subdomain, or bare where there is no such service.
  const bool service_exists =
      context.informers.get(res::kServices).find(ns + "/" + service) != nullptr;
  const auto pod =
      host.empty() && service_exists
          ? nullptr
          : context.informers.get(res::kPods).find(ns + "/" + (host.empty() ? service : host));
  if (pod && (host.empty() || json::as_string(at(*pod, "spec", "subdomain")) == service)) {
    if (const auto address = json::text(at(*pod, "status", "podIP")); !address.empty())
      out.push_back(address);
    return out;
  }
  if (service_exists && host.empty()) return out;
  return std::nullopt;
}

std::string resolv_conf(const std::string& nameserver,
                        const std::string& ns,
                        const std::string& machine) {
  std::string out =
      fmt::format("search {0}.svc.cluster.local svc.cluster.local cluster.local\nnameserver {1}\n",
                  ns,
                  nameserver);
  int servers = 1;
  for (const auto& line : split(machine, '\n')) {
    // libc reads three servers at most.
    if (!line.starts_with("nameserver") || servers >= 3) continue;
    out += line + "\n";
    ++servers;
  }
  return out + "options ndots:5\n";
}

Result<void> Dns::start() {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(53);
  inet_pton(AF_INET, address_.c_str(), &address.sin_addr);
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return fail(
        Code::kInternal,
        fmt::format(
            "names of services will not resolve: bind {}:53: {}", address_, std::strerror(errno)));
  }
  socket_ = net::make_descriptor(context_.loop, fd);
  context_.loop.spawn(serve(socket_));
  return {};
}

void Dns::stop() {
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
      const auto answer =
          answer_query(std::string_view(buffer, static_cast<std::size_t>(got)), resolve);
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
