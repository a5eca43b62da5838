#include "agent/process/capabilities.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

namespace muster::agent::process {
namespace {

// clang-format off
constexpr std::array<std::string_view, 41> kNames = {
    "CHOWN",         "DAC_OVERRIDE",   "DAC_READ_SEARCH",  "FOWNER",      "FSETID",
    "KILL",          "SETGID",         "SETUID",           "SETPCAP",     "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN",      "NET_RAW",     "IPC_LOCK",
    "IPC_OWNER",     "SYS_MODULE",     "SYS_RAWIO",        "SYS_CHROOT",  "SYS_PTRACE",
    "SYS_PACCT",     "SYS_ADMIN",      "SYS_BOOT",         "SYS_NICE",    "SYS_RESOURCE",
    "SYS_TIME",      "SYS_TTY_CONFIG", "MKNOD",            "LEASE",       "AUDIT_WRITE",
    "AUDIT_CONTROL", "SETFCAP",        "MAC_OVERRIDE",     "MAC_ADMIN",   "SYSLOG",
    "WAKE_ALARM",    "BLOCK_SUSPEND",  "AUDIT_READ",       "PERFMON",     "BPF",
    "CHECKPOINT_RESTORE"};
// clang-format on
constexpr std::uint64_t kAll = (1ULL << kNames.size()) - 1;

/// containerd's and Docker's default but MKNOD: they keep made devices from being opened with a
/// device control group, which is not here, and a pod could make itself another's GPU.
constexpr std::uint64_t kUsual = 1ULL << CAP_CHOWN | 1ULL << CAP_DAC_OVERRIDE | 1ULL << CAP_FSETID |
                                 1ULL << CAP_FOWNER | 1ULL << CAP_NET_RAW | 1ULL << CAP_SETGID |
                                 1ULL << CAP_SETUID | 1ULL << CAP_SETFCAP | 1ULL << CAP_SETPCAP |
                                 1ULL << CAP_NET_BIND_SERVICE | 1ULL << CAP_SYS_CHROOT |
                                 1ULL << CAP_KILL | 1ULL << CAP_AUDIT_WRITE;

std::uint64_t bits_of(const std::vector<std::string>& names) {
  std::uint64_t out = 0;
  for (std::string_view name : names) {
    if (name.starts_with("CAP_")) name.remove_prefix(4);
    if (name == "ALL") out |= kAll;
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      if (kNames[i] == name) out |= 1ULL << i;
    }
  }
  return out;
}

}  // namespace

std::uint64_t capability_set(const std::vector<std::string>& add,
                             const std::vector<std::string>& drop) {
  return (kUsual & ~bits_of(drop)) | bits_of(add);
}

bool beyond_usual(const std::vector<std::string>& add, const std::vector<std::string>& drop) {
  return (capability_set(add, drop) & ~kUsual) != 0;
}

bool needs_machine(const std::vector<std::string>& add) {
  return (bits_of(add) & ~(kUsual | 1ULL << CAP_MKNOD)) != 0;
}

void limit_capabilities(std::uint64_t allowed) {
  // The kernel may know more than this file does.
  for (unsigned long number = 0; number < 64; ++number) {
    if (number < kNames.size() && (allowed >> number & 1) != 0) continue;
    if (prctl(PR_CAPBSET_DROP, number, 0, 0, 0) != 0 && errno == EINVAL) break;
  }
  // What an execve passes on beside the bounding set.
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, sets) != 0) return;
  for (auto& set : sets) set.inheritable = 0;
  syscall(SYS_capset, &header, sets);
}

}  // namespace muster::agent::process
