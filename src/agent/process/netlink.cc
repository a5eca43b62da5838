#include "agent/process/netlink.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

#include "agent/process/messages.h"

namespace muster::agent::process {
namespace {

/// Several requests in one datagram, each asking for an acknowledgement.
class Batch {
 public:
  template <typename Payload>
  void begin(int type, int flags, const Payload& payload) {
    start_ = buffer_.size();
    nlmsghdr header{};
    header.nlmsg_type = static_cast<std::uint16_t>(type);
    header.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
    header.nlmsg_seq = ++count_;
    append(&header, sizeof header);
    append(&payload, sizeof payload);
  }
  void attribute(int type, const void* data, std::size_t size) {
    rtattr head{};
    head.rta_type = static_cast<std::uint16_t>(type);
    head.rta_len = static_cast<std::uint16_t>(RTA_LENGTH(size));
    append(&head, sizeof head);
    append(data, size);
  }
  void attribute(int type, const std::string& text) {
    attribute(type, text.c_str(), text.size() + 1);
  }
  void attribute(int type, std::uint32_t value) { attribute(type, &value, sizeof value); }
  std::size_t nest(int type) {
    const auto at = buffer_.size();
    rtattr head{};
    head.rta_type = static_cast<std::uint16_t>(type);
    append(&head, sizeof head);
    return at;
  }
  void raw(const void* data, std::size_t size) { append(data, size); }
  void end_nest(std::size_t at) {
    const auto length = static_cast<std::uint16_t>(buffer_.size() - at);
    std::memcpy(buffer_.data() + at + offsetof(rtattr, rta_len), &length, sizeof length);
  }
  void end() {
    const auto length = static_cast<std::uint32_t>(buffer_.size() - start_);
    std::memcpy(buffer_.data() + start_ + offsetof(nlmsghdr, nlmsg_len), &length, sizeof length);
  }

  Result<void> send(int socket, const std::string& what) {
    if (::send(socket, buffer_.data(), buffer_.size(), 0) < 0)
      return fail(system_error(what, errno));
    std::uint32_t acknowledged = 0;
    while (acknowledged < count_) {
      alignas(nlmsghdr) char answer[16 * 1024];
      const auto got = recv(socket, answer, sizeof answer, 0);
      if (got < 0) {
        if (errno == EINTR) continue;
        return fail(system_error(what, errno));
      }
      auto left = static_cast<unsigned>(got);
      for (auto* header = reinterpret_cast<nlmsghdr*>(answer); NLMSG_OK(header, left);
           header = NLMSG_NEXT(header, left)) {
        if (header->nlmsg_type != NLMSG_ERROR) continue;
        const auto* error = static_cast<const nlmsgerr*>(NLMSG_DATA(header));
        if (error->error != 0) return fail(system_error(what, -error->error));
        ++acknowledged;
      }
    }
    return {};
  }

 private:
  void append(const void* data, std::size_t size) {
    const auto* bytes = static_cast<const char*>(data);
    buffer_.insert(buffer_.end(), bytes, bytes + size);
    buffer_.resize((buffer_.size() + 3) & ~std::size_t{3});
  }
  std::vector<char> buffer_;
  std::size_t start_ = 0;
  std::uint32_t count_ = 0;
};

ifaddrmsg address_payload(int index, int prefix) {
  ifaddrmsg payload{};
  payload.ifa_family = AF_INET;
  payload.ifa_prefixlen = static_cast<std::uint8_t>(prefix);
  payload.ifa_index = static_cast<std::uint32_t>(index);
  return payload;
}

void add_address(Batch& batch, int index, std::uint32_t address, int prefix) {
  const auto payload = address_payload(index, prefix);
  const std::uint32_t wire = htonl(address);
  const std::uint32_t broadcast = htonl(address | ((1U << (32 - prefix)) - 1));
  batch.begin(RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, payload);
  batch.attribute(IFA_LOCAL, wire);
  batch.attribute(IFA_ADDRESS, wire);
  batch.attribute(IFA_BROADCAST, broadcast);
  batch.end();
}

void add_default_route(Batch& batch, int index, std::uint32_t gateway) {
  rtmsg route{};
  route.rtm_family = AF_INET;
  route.rtm_table = RT_TABLE_MAIN;
  route.rtm_protocol = RTPROT_STATIC;
  route.rtm_scope = RT_SCOPE_UNIVERSE;
  route.rtm_type = RTN_UNICAST;
  batch.begin(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, route);
  batch.attribute(RTA_GATEWAY, htonl(gateway));
  batch.attribute(RTA_OIF, static_cast<std::uint32_t>(index));
  batch.end();
}

/// `up`: with IFF_UP. The link is named by its number, or by its name where that is not known.
void begin_link(Batch& batch, int index, const std::string& name, bool up) {
  ifinfomsg payload{};
  payload.ifi_index = index;
  payload.ifi_flags = payload.ifi_change = up ? IFF_UP : 0;
  batch.begin(RTM_NEWLINK, 0, payload);
  if (index == 0) batch.attribute(IFLA_IFNAME, name);
}

void link_up(Batch& batch, int index) {
  begin_link(batch, index, "", true);
  batch.end();
}

/// Each end of a veth gets a queue for each processor unless told otherwise, and each queue its own
/// files in /sys; packets go through the sending processor's backlog either way.
void one_queue(Batch& batch) {
  batch.attribute(IFLA_NUM_TX_QUEUES, 1U);
  batch.attribute(IFLA_NUM_RX_QUEUES, 1U);
}

/// Pods have no IPv6 addresses. Left to itself the kernel would give each end of a link one and
/// tell everyone on the bridge: work for every pod each time one comes. Before the link is up, or
/// it is too late.
void no_ipv6_addresses(Batch& batch) {
  const auto families = batch.nest(IFLA_AF_SPEC);
  const auto inet6 = batch.nest(AF_INET6);
  const std::uint8_t mode = IN6_ADDR_GEN_MODE_NONE;
  batch.attribute(IFLA_INET6_ADDR_GEN_MODE, &mode, sizeof mode);
  batch.end_nest(inet6);
  batch.end_nest(families);
}

void set_port(Batch& batch, const PodLink& link) {
  begin_link(batch, 0, link.host_name, false);
  const auto info = batch.nest(IFLA_LINKINFO);
  batch.attribute(IFLA_INFO_SLAVE_KIND, std::string("bridge"));
  const auto data = batch.nest(IFLA_INFO_SLAVE_DATA);
  const std::uint8_t isolated = link.isolated, hairpin = link.hairpin;
  batch.attribute(IFLA_BRPORT_ISOLATED, &isolated, sizeof isolated);
  batch.attribute(IFLA_BRPORT_MODE, &hairpin, sizeof hairpin);
  batch.end_nest(data);
  batch.end_nest(info);
  batch.end();
}

}  // namespace

std::string ipv4_text(std::uint32_t address) {
  return fmt::format(
      "{}.{}.{}.{}", address >> 24, (address >> 16) & 255, (address >> 8) & 255, address & 255);
}

Result<int> open_netlink() {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return fail(system_error("netlink socket", errno));
  return fd;
}

Result<Subnet> free_subnet() {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return fail(system_error("list interfaces", errno));
  std::set<std::uint32_t> used;
  for (auto* item = list; item != nullptr; item = item->ifa_next) {
    if (item->ifa_addr == nullptr || item->ifa_addr->sa_family != AF_INET) continue;
    used.insert(ntohl(reinterpret_cast<sockaddr_in*>(item->ifa_addr)->sin_addr.s_addr) >> 16);
  }
  freeifaddrs(list);
  for (std::uint32_t second = 244; second <= 254; ++second) {
    const std::uint32_t base = (10U << 24) | (second << 16);
    if (!used.contains(base >> 16)) return Subnet{base, 16};
  }
  return fail(Code::kInternal,
              "no free pod subnet: each of 10.244.0.0/16 to 10.254.0.0/16 is on an interface; "
              "remove an unused bridge (ip link)");
}

constexpr std::size_t kAliasMax = 256;  // the kernel's IFALIASZ

Result<void> ensure_bridge(const std::string& name,
                           std::uint32_t address,
                           int prefix,
                           const std::string& owner) {
  const auto netlink = open_netlink();
  if (!netlink) return fail(netlink.error());
  const Fd socket(*netlink);
  if (if_nametoindex(name.c_str()) == 0) {
    Batch create;
    ifinfomsg payload{};
    create.begin(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, payload);
    create.attribute(IFLA_IFNAME, name);
    // A fixed address: without one the bridge takes the lowest of its ports and changes it as pods
    // come and go.
    const unsigned char mac[6] = {0x0a,
                                  0x58,
                                  static_cast<unsigned char>(address >> 24),
                                  static_cast<unsigned char>(address >> 16),
                                  static_cast<unsigned char>(address >> 8),
                                  static_cast<unsigned char>(address)};
    create.attribute(IFLA_ADDRESS, mac, sizeof mac);
    const auto info = create.nest(IFLA_LINKINFO);
    create.attribute(IFLA_INFO_KIND, std::string("bridge"));
    const auto data = create.nest(IFLA_INFO_DATA);
    const std::uint8_t no = 0;  // who listens to what is not worth three timers a pod
    create.attribute(IFLA_BR_MCAST_SNOOPING, &no, sizeof no);
    create.end_nest(data);
    create.end_nest(info);
    create.end();
    const auto made = create.send(socket.get(), fmt::format("create bridge \"{}\"", name));
    if (!made) return made;
  }
  Batch configure;
  const int index = static_cast<int>(if_nametoindex(name.c_str()));
  begin_link(configure, index, name, false);
  no_ipv6_addresses(configure);
  configure.end();
  add_address(configure, index, address, prefix);
  link_up(configure, index);
  auto done = configure.send(socket.get(), fmt::format("configure bridge \"{}\"", name));
  if (!done || owner.size() >= kAliasMax) return done;
  Batch note;
  ifinfomsg payload{};
  payload.ifi_index = index;
  note.begin(RTM_NEWLINK, 0, payload);
  note.attribute(IFLA_IFALIAS, owner);
  note.end();
  // Without the note a left-over bridge has to be removed by hand; nothing else needs it.
  (void)note.send(socket.get(), fmt::format("note the owner of bridge \"{}\"", name));
  return done;
}

std::vector<std::string> orphaned_bridges() {
  namespace fs = std::filesystem;
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/sys/class/net", ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("mstr")) continue;
    std::ifstream file(entry.path() / "ifalias");
    std::string owner;
    std::getline(file, owner);
    if (!owner.starts_with('/')) continue;
    std::error_code missing;
    const bool used = !fs::is_empty(entry.path() / "brif", missing) || missing;
    // The owner writes the file before it makes the bridge.
    if (!used && !fs::exists(owner + "/network.json", missing) && !missing) found.push_back(name);
  }
  return found;
}

void remove_link(const std::string& name) {
  const auto netlink = open_netlink();
  const auto index = if_nametoindex(name.c_str());
  if (!netlink || index == 0) return;
  const Fd socket(*netlink);
  Batch batch;
  ifinfomsg payload{};
  payload.ifi_index = static_cast<int>(index);
  batch.begin(RTM_DELLINK, 0, payload);
  batch.end();
  (void)batch.send(socket.get(), "remove link");
}

Result<void> loopback_up() {
  const auto netlink = open_netlink();
  if (!netlink) return fail(netlink.error());
  const Fd socket(*netlink);
  Batch batch;
  link_up(batch, 1);
  return batch.send(socket.get(), "set up lo");
}

Result<void> join_bridge(int host_netlink, const PodLink& link) {
  const Fd own_namespace(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  Batch create;
  const ifinfomsg payload{};
  create.begin(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, payload);
  create.attribute(IFLA_IFNAME, link.host_name);
  one_queue(create);
  const auto info = create.nest(IFLA_LINKINFO);
  create.attribute(IFLA_INFO_KIND, std::string("veth"));
  const auto data = create.nest(IFLA_INFO_DATA);
  const auto peer = create.nest(VETH_INFO_PEER);
  const ifinfomsg inner{};
  create.raw(&inner, sizeof inner);
  create.attribute(IFLA_IFNAME, std::string("eth0"));
  one_queue(create);
  create.attribute(IFLA_NET_NS_FD, static_cast<std::uint32_t>(own_namespace.get()));
  create.end_nest(peer);
  create.end_nest(data);
  create.end_nest(info);
  create.end();
  begin_link(create, 0, link.host_name, false);
  no_ipv6_addresses(create);
  create.end();
  begin_link(create, 0, link.host_name, true);
  create.attribute(IFLA_MASTER, static_cast<std::uint32_t>(link.bridge_index));
  create.end();
  if (link.isolated || link.hairpin) set_port(create, link);
  const auto made = create.send(host_netlink, fmt::format("create veth \"{}\"", link.host_name));
  if (!made) return made;

  const auto netlink = open_netlink();
  if (!netlink) return fail(netlink.error());
  const Fd socket(*netlink);
  const int index = static_cast<int>(if_nametoindex("eth0"));
  Batch configure;
  link_up(configure, 1);
  begin_link(configure, index, "", false);
  no_ipv6_addresses(configure);
  configure.end();
  add_address(configure, index, link.address, link.prefix);
  link_up(configure, index);
  add_default_route(configure, index, link.gateway);
  return configure.send(socket.get(), "configure eth0");
}

Result<void> change_address(const PodLink& link, std::uint32_t old) {
  const auto netlink = open_netlink();
  if (!netlink) return fail(netlink.error());
  const Fd socket(*netlink);
  const int index = static_cast<int>(if_nametoindex("eth0"));
  Batch change;
  // With its last address the link loses its routes and what it knew of its neighbours.
  change.begin(RTM_DELADDR, 0, address_payload(index, link.prefix));
  change.attribute(IFA_LOCAL, htonl(old));
  change.end();
  add_address(change, index, link.address, link.prefix);
  add_default_route(change, index, link.gateway);
  return change.send(socket.get(), "change the address of eth0");
}

}  // namespace muster::agent::process
