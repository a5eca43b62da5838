#include "agent/process/conntrack.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "agent/fd.h"
#include "base/strings.h"

namespace muster::agent::process {
namespace {

constexpr std::size_t kBufferBytes = 64 * 1024;

bool lies_in(const std::string& network, const std::string& address) {
  const auto slash = network.find('/');
  const auto bits =
      slash == std::string::npos ? 32 : parse_int(network.substr(slash + 1)).value_or(-1);
  in_addr one{}, other{};
  if (bits < 0 || bits > 32 || inet_pton(AF_INET, network.substr(0, slash).c_str(), &one) != 1 ||
      inet_pton(AF_INET, address.c_str(), &other) != 1)
    return false;
  const auto mask = bits == 0 ? 0U : ~0U << (32 - bits);
  return (ntohl(one.s_addr) & mask) == (ntohl(other.s_addr) & mask);
}

bool goes(const Fence::Way& way, const std::string& peer, const Connection& connection) {
  if (std::none_of(way.peers.begin(), way.peers.end(), [&peer](const std::string& network) {
        return lies_in(network, peer);
      }))
    return false;
  return way.ports.empty() ||
         std::any_of(way.ports.begin(), way.ports.end(), [&connection](const Fence::Ports& ports) {
           return ports.protocol == connection.protocol &&
                  (ports.first == 0 ||
                   (connection.port >= ports.first && connection.port <= ports.last));
         });
}

/// The parts of a netlink message, or of a part of one.
template <typename Each>
void attributes(std::string_view bytes, const Each& each) {
  while (bytes.size() >= sizeof(nlattr)) {
    nlattr head{};
    std::memcpy(&head, bytes.data(), sizeof head);
    if (head.nla_len < sizeof head || head.nla_len > bytes.size()) return;
    each(head.nla_type & NLA_TYPE_MASK, bytes.substr(sizeof head, head.nla_len - sizeof head));
    bytes.remove_prefix(std::min<std::size_t>(NLA_ALIGN(head.nla_len), bytes.size()));
  }
}

struct Tuple {
  std::string from, to;
  int protocol = 0;
  int from_port = 0, to_port = 0;
};

std::string address_of(std::string_view bytes) {
  char text[INET_ADDRSTRLEN] = {};
  if (bytes.size() == sizeof(in_addr)) inet_ntop(AF_INET, bytes.data(), text, sizeof text);
  return text;
}

int port_of(std::string_view bytes) {
  std::uint16_t port = 0;
  if (bytes.size() == sizeof port) std::memcpy(&port, bytes.data(), sizeof port);
  return ntohs(port);
}

Tuple tuple_of(std::string_view bytes) {
  Tuple out;
  attributes(bytes, [&out](int type, std::string_view part) {
    if (type == CTA_TUPLE_IP)
      attributes(part, [&out](int inner, std::string_view value) {
        if (inner == CTA_IP_V4_SRC) out.from = address_of(value);
        if (inner == CTA_IP_V4_DST) out.to = address_of(value);
      });
    if (type == CTA_TUPLE_PROTO)
      attributes(part, [&out](int inner, std::string_view value) {
        if (inner == CTA_PROTO_NUM && !value.empty())
          out.protocol = static_cast<unsigned char>(value[0]);
        if (inner == CTA_PROTO_SRC_PORT) out.from_port = port_of(value);
        if (inner == CTA_PROTO_DST_PORT) out.to_port = port_of(value);
      });
  });
  return out;
}

/// One that the kernel told of, and its own name for it.
struct Tracked {
  Connection connection;
  std::string name;  // CTA_TUPLE_ORIG as it came
};

Tracked tracked_of(std::string_view bytes) {
  Tracked out;
  attributes(bytes, [&out](int type, std::string_view part) {
    if (type == CTA_TUPLE_ORIG) {
      out.name = std::string(part);
      out.connection.from = tuple_of(part).from;
    }
    if (type != CTA_TUPLE_REPLY) return;
    // Who answers: behind a service's address that is the pod.
    const auto answer = tuple_of(part);
    out.connection.to = answer.from;
    out.connection.port = answer.from_port;
    out.connection.protocol = answer.protocol == IPPROTO_TCP    ? "TCP"
                              : answer.protocol == IPPROTO_UDP  ? "UDP"
                              : answer.protocol == IPPROTO_SCTP ? "SCTP"
                                                                : "";
  });
  return out;
}

struct Request {
  nlmsghdr header{};
  nfgenmsg family{};
};

Request request(int what, int flags, std::size_t more) {
  Request out;
  out.header.nlmsg_len = static_cast<std::uint32_t>(sizeof out + more);
  out.header.nlmsg_type = static_cast<std::uint16_t>(NFNL_SUBSYS_CTNETLINK << 8 | what);
  out.header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
  out.family.nfgen_family = AF_INET;
  out.family.version = NFNETLINK_V0;
  return out;
}

/// Messages until the last; the error that the kernel answers with, 0: none.
template <typename Each>
int read_answer(int socket, const Each& each) {
  std::string buffer(kBufferBytes, '\0');
  for (;;) {
    const auto got = recv(socket, buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return errno;
    std::string_view rest(buffer.data(), static_cast<std::size_t>(got));
    while (rest.size() >= sizeof(nlmsghdr)) {
      nlmsghdr header{};
      std::memcpy(&header, rest.data(), sizeof header);
      if (header.nlmsg_len < sizeof header || header.nlmsg_len > rest.size()) return EBADMSG;
      if (header.nlmsg_type == NLMSG_DONE) return 0;
      if (header.nlmsg_type == NLMSG_ERROR) {
        int error = 0;
        std::memcpy(&error, rest.data() + sizeof header, sizeof error);
        return -error;
      }
      if (header.nlmsg_len >= sizeof(Request))
        each(rest.substr(sizeof(Request), header.nlmsg_len - sizeof(Request)));
      rest.remove_prefix(std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), rest.size()));
    }
  }
}

std::vector<std::string> machine_addresses() {
  std::vector<std::string> out;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return out;
  for (const auto* item = list; item != nullptr; item = item->ifa_next) {
    if (item->ifa_addr == nullptr || item->ifa_addr->sa_family != AF_INET) continue;
    const auto* address = reinterpret_cast<const sockaddr_in*>(item->ifa_addr);
    out.push_back(address_of({reinterpret_cast<const char*>(&address->sin_addr), sizeof(in_addr)}));
  }
  freeifaddrs(list);
  return out;
}

}  // namespace

bool passes(const std::vector<Fence>& fences,
            const std::vector<std::string>& machine,
            const Connection& connection) {
  const auto among = [](const std::vector<std::string>& list, const std::string& one) {
    return std::find(list.begin(), list.end(), one) != list.end();
  };
  if (among(machine, connection.from) || among(machine, connection.to)) return true;
  return std::all_of(fences.begin(), fences.end(), [&](const Fence& fence) {
    const auto& pod = fence.inbound ? connection.to : connection.from;
    const auto& peer = fence.inbound ? connection.from : connection.to;
    return !among(fence.pods, pod) ||
           std::any_of(fence.ways.begin(), fence.ways.end(), [&](const Fence::Way& way) {
             return goes(way, peer, connection);
           });
  });
}

Result<int> forget_connections(const std::vector<Fence>& fences) {
  if (fences.empty()) return 0;
  const Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER));
  if (!socket) return fail(system_error("open the kernel's list of connections", errno));
  const auto wanted = request(IPCTNL_MSG_CT_GET, NLM_F_DUMP, 0);
  if (send(socket.get(), &wanted, sizeof wanted, 0) != sizeof wanted)
    return fail(system_error("list connections", errno));
  const auto machine = machine_addresses();
  std::vector<std::string> closed;
  const int problem = read_answer(socket.get(), [&](std::string_view bytes) {
    auto one = tracked_of(bytes);
    if (!passes(fences, machine, one.connection)) closed.push_back(std::move(one.name));
  });
  if (problem != 0) return fail(system_error("list connections", problem));
  for (const auto& name : closed) {
    nlattr head{};
    head.nla_len = static_cast<std::uint16_t>(sizeof head + name.size());
    head.nla_type = NLA_F_NESTED | CTA_TUPLE_ORIG;
    const auto remove =
        request(IPCTNL_MSG_CT_DELETE, NLM_F_ACK, NLA_ALIGN(sizeof head + name.size()));
    std::string message(reinterpret_cast<const char*>(&remove), sizeof remove);
    message.append(reinterpret_cast<const char*>(&head), sizeof head);
    message += name;
    message.resize(remove.header.nlmsg_len);
    if (send(socket.get(), message.data(), message.size(), 0) < 0)
      return fail(system_error("forget a connection", errno));
    const int refused = read_answer(socket.get(), [](std::string_view) {});
    if (refused != 0 && refused != ENOENT)  // it has ended by itself
      return fail(system_error("forget a connection", refused));
  }
  return static_cast<int>(closed.size());
}

}  // namespace muster::agent::process
