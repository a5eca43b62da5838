#include "agent/process/namespaces.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <net/if.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <filesystem>

#include "agent/files.h"
#include "agent/process/netlink.h"

namespace muster::agent::process {
namespace {

PodLink link_of(const ShimConfig& config) {
  PodLink link;
  // Not after the address: the kernel removes an old pod's link late.
  link.host_name = fmt::format("mv{:x}", getpid());
  link.address = config.address;
  link.gateway = config.gateway;
  link.prefix = config.prefix;
  link.isolated = config.isolated_port;
  link.hairpin = config.hairpin_port;
  return link;
}

enum class Network { kUnused, kInUse, kPortsHeld };

/// Unused: no socket of this network is open anywhere. Ports are held by connections that the
/// kernel has yet to forget, for a minute.
Network look_at_network() {
  const Fd file(open("/proc/self/net/sockstat", O_RDONLY | O_CLOEXEC));
  char text[512] = {};
  if (!file || read(file.get(), text, sizeof text - 1) <= 0) return Network::kPortsHeld;
  int used = -1, in_use = -1, orphans = -1, waiting = -1;
  const int found = std::sscanf(
      text, "sockets: used %d TCP: inuse %d orphan %d tw %d", &used, &in_use, &orphans, &waiting);
  if (found != 4 || waiting != 0) return Network::kPortsHeld;
  return used == 0 && in_use == 0 ? Network::kUnused : Network::kInUse;
}

/// The kernel frees some sockets, those that asked it for addresses among them, a moment after they
/// were closed.
bool network_becomes_unused() {
  constexpr useconds_t kPauseUs = 500, kPauseMaxUs = 8000;
  constexpr useconds_t kPatienceUs = 100'000;
  useconds_t pause = kPauseUs;
  for (useconds_t waited = 0; waited < kPatienceUs; waited += pause) {
    if (waited > 0) {
      usleep(pause);
      pause = std::min(2 * pause, kPauseMaxUs);
    }
    const auto state = look_at_network();
    if (state != Network::kInUse) return state == Network::kUnused;
  }
  return false;
}

/// The network belongs to the machine's users, not to the pod's, whose root therefore needs leave to
/// listen at ports such as 22 and to ping. Nobody else is in it.
void open_ports() {
  (void)write_file("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
  (void)write_file("/proc/sys/net/ipv4/ping_group_range", "0 2147483647");
}

}  // namespace

Namespaces::Namespaces() {
  char name[HOST_NAME_MAX + 1] = {};
  if (gethostname(name, sizeof name - 1) == 0) machine_name_ = name;
}

Namespaces::~Namespaces() {
  std::error_code ignored;
  for (const auto& folder : {ready_root_.folder, used_folder_}) {
    if (!folder.empty()) std::filesystem::remove_all(folder, ignored);
  }
}

Result<void> Namespaces::enter(const ShimConfig& config) {
  if (entered_) return {};
  const auto netlink = open_netlink();
  if (!netlink) return fail(netlink.error());
  const Fd host_netlink(*netlink);
  auto link = link_of(config);
  link.bridge_index =
      config.bridge.empty() ? 0 : static_cast<int>(if_nametoindex(config.bridge.c_str()));
  int flags = 0;
  if (!config.sandbox.host_network) flags |= CLONE_NEWNET | CLONE_NEWUTS;
  if (!config.sandbox.host_ipc) flags |= CLONE_NEWIPC;
  if (unshare(flags) != 0) return fail(system_error("make namespaces", errno));
  entered_ = true;
  if (config.sandbox.host_network) return {};
  open_ports();
  auto connected = config.bridge.empty() ? loopback_up() : join_bridge(host_netlink.get(), link);
  if (connected) connected = make_users(config);
  return connected;
}

Result<void> Namespaces::make_users(const ShimConfig& config) {
  if (!config.maps_users) return {};
  first_id_ = first_id_of(config);
  auto made = make_user_namespace(first_id_);
  if (!made) return fail(made.error());
  users_ = std::move(*made);
  return {};
}

void Namespaces::make_root(const RootPlan& plan) {
  if (plan.place.empty()) return;
  std::error_code ignored;
  if (!ready_root_.folder.empty()) std::filesystem::remove_all(ready_root_.folder, ignored);
  ready_root_ = {};
  const auto kind = last_kind_.value_or(plan.for_images ? FolderKind::kImage : FolderKind::kHost);
  if (!furniture_ && owner().mapped()) {
    auto furniture = make_furniture_apart(plan, /*shared=*/true);
    if (furniture) furniture_ = std::move(*furniture);
  }
  auto made = kind == FolderKind::kHost
                  ? make_host_root_apart(plan, owner(), {used_folder_, furniture_.get()})
                  : make_image_parts_apart(plan, owner(), furniture_.get());
  if (!made) return;  // the container finds out why and says so
  if (made->folder != used_folder_ && !used_folder_.empty())
    std::filesystem::remove_all(used_folder_, ignored);
  used_folder_.clear();
  ready_root_ = std::move(*made);
}

HostRoot Namespaces::take_root(FolderKind kind) {
  last_kind_ = kind;
  // The /dev and /sys of a host root are as good for an image.
  if (kind == FolderKind::kHost && ready_root_.kind != kind) return {};
  return std::exchange(ready_root_, {});
}

void Namespaces::make_ahead(const ShimConfig& config) {
  mounts_.make_ahead(config, owner());
  make_root(config.roots);
}

bool Namespaces::renew(const ShimConfig& config, const Next& next) {
  const bool whole = entered_ && !config.sandbox.host_network && !config.sandbox.host_ipc &&
                     !config.bridge.empty();
  if (!whole) return false;
  if (waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD) return false;
  if (!network_becomes_unused()) return false;
  if (unshare(CLONE_NEWIPC) != 0) return false;
  if (sethostname(machine_name_.data(), machine_name_.size()) != 0) return false;
  auto link = link_of(config);
  link.address = next.address;
  if (!change_address(link, config.address)) return false;
  return !next.new_users || make_users(config).has_value();
}

}  // namespace muster::agent::process
