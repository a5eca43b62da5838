#include "agent/process/seccomp.h"

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <map>

namespace muster::agent::process {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
constexpr std::uint32_t kOtherAbi = 0x40000000;  // x32 calls carry this bit
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
constexpr std::uint32_t kOtherAbi = 0;
#else
constexpr std::uint32_t kArchitecture = 0;
constexpr std::uint32_t kOtherAbi = 0;
#endif

constexpr std::uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr std::uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;
constexpr std::uint32_t kUnknown = SECCOMP_RET_ERRNO | ENOSYS;
/// The last call this file knows of (mseal); later ones are unknown.
constexpr std::uint32_t kLast = 462;
constexpr std::uint32_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
                                      CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

constexpr int kNoCapability = -1;
struct Refused {
  int call;
  int capability;  // that opens it
};
// clang-format off
constexpr Refused kRefused[] = {
    {SYS_mount, CAP_SYS_ADMIN}, {SYS_umount2, CAP_SYS_ADMIN}, {SYS_pivot_root, CAP_SYS_ADMIN},
    {SYS_move_mount, CAP_SYS_ADMIN}, {SYS_open_tree, CAP_SYS_ADMIN}, {SYS_fsopen, CAP_SYS_ADMIN},
    {SYS_fsconfig, CAP_SYS_ADMIN}, {SYS_fsmount, CAP_SYS_ADMIN}, {SYS_fspick, CAP_SYS_ADMIN},
    {SYS_mount_setattr, CAP_SYS_ADMIN}, {SYS_unshare, CAP_SYS_ADMIN}, {SYS_setns, CAP_SYS_ADMIN},
    {SYS_quotactl, CAP_SYS_ADMIN}, {SYS_quotactl_fd, CAP_SYS_ADMIN},
    {SYS_fanotify_init, CAP_SYS_ADMIN}, {SYS_lookup_dcookie, CAP_SYS_ADMIN},
    {SYS_swapon, CAP_SYS_ADMIN}, {SYS_swapoff, CAP_SYS_ADMIN}, {SYS_bpf, CAP_BPF},
    {SYS_perf_event_open, CAP_PERFMON}, {SYS_open_by_handle_at, CAP_DAC_READ_SEARCH},
    {SYS_name_to_handle_at, CAP_DAC_READ_SEARCH}, {SYS_init_module, CAP_SYS_MODULE},
    {SYS_finit_module, CAP_SYS_MODULE}, {SYS_delete_module, CAP_SYS_MODULE},
    {SYS_kexec_load, CAP_SYS_BOOT},
#ifdef SYS_kexec_file_load
    {SYS_kexec_file_load, CAP_SYS_BOOT},
#endif
    {SYS_reboot, CAP_SYS_BOOT}, {SYS_settimeofday, CAP_SYS_TIME}, {SYS_clock_settime, CAP_SYS_TIME},
    {SYS_syslog, CAP_SYSLOG}, {SYS_acct, CAP_SYS_PACCT}, {SYS_vhangup, CAP_SYS_TTY_CONFIG},
#ifdef SYS_iopl
    {SYS_iopl, CAP_SYS_RAWIO}, {SYS_ioperm, CAP_SYS_RAWIO},
#endif
    {SYS_userfaultfd, kNoCapability}, {SYS_io_uring_setup, kNoCapability},
    {SYS_io_uring_enter, kNoCapability}, {SYS_io_uring_register, kNoCapability},
    {SYS_keyctl, kNoCapability}, {SYS_add_key, kNoCapability}, {SYS_request_key, kNoCapability},
    {SYS_nfsservctl, kNoCapability},
};
// clang-format on

/// What happens to a call, by number; those not listed are allowed.
enum class Verdict { kAllow, kRefuse, kUnknown, kLookAtClone, kLookAtSocket };

std::map<std::uint32_t, Verdict> verdicts(std::uint64_t capabilities) {
  const auto has = [capabilities](int capability) {
    return capability >= 0 && (capabilities >> capability & 1) != 0;
  };
  std::map<std::uint32_t, Verdict> out;
  for (const auto& one : kRefused) {
    if (!has(one.capability) && !(has(CAP_SYS_ADMIN) && one.capability >= CAP_PERFMON))
      out[static_cast<std::uint32_t>(one.call)] = Verdict::kRefuse;
  }
  if (!has(CAP_SYS_ADMIN)) {
    out[SYS_clone] = Verdict::kLookAtClone;
    out[SYS_clone3] = Verdict::kUnknown;  // its flags lie in memory, which no filter reads
  }
  out[SYS_socket] = Verdict::kLookAtSocket;
  return out;
}

sock_filter load(std::size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}
sock_filter answer(std::uint32_t value) { return BPF_STMT(BPF_RET | BPF_K, value); }
sock_filter jump(int test, std::uint32_t value, std::uint8_t yes, std::uint8_t no) {
  return BPF_JUMP(static_cast<std::uint16_t>(BPF_JMP | test | BPF_K), value, yes, no);
}

/// What a call of this verdict runs into. Offsets of arguments are those of their low halves.
std::vector<sock_filter> leaf(Verdict verdict) {
  constexpr auto kFirst = offsetof(seccomp_data, args);
  switch (verdict) {
    case Verdict::kAllow:
      return {answer(kAllow)};
    case Verdict::kRefuse:
      return {answer(kRefuse)};
    case Verdict::kUnknown:
      return {answer(kUnknown)};
    case Verdict::kLookAtClone:
      return {load(kFirst), jump(BPF_JSET, kNamespaces, 0, 1), answer(kRefuse), answer(kAllow)};
    case Verdict::kLookAtSocket:
      return {load(kFirst), jump(BPF_JEQ, AF_VSOCK, 0, 1), answer(kRefuse), answer(kAllow)};
  }
  return {answer(kRefuse)};
}

struct Range {
  std::uint32_t first;  // up to the next range's
  Verdict verdict;
};

/// A search by halves: a call passes some seven comparisons, whatever its number.
std::vector<sock_filter> search(const std::vector<Range>& ranges,
                                std::size_t begin,
                                std::size_t end) {
  if (end - begin == 1) return leaf(ranges[begin].verdict);
  const auto middle = begin + (end - begin) / 2;
  const auto low = search(ranges, begin, middle), high = search(ranges, middle, end);
  std::vector<sock_filter> out;
  // Conditional jumps reach 255 instructions; the whole is shorter.
  out.push_back(jump(BPF_JGE, ranges[middle].first, static_cast<std::uint8_t>(low.size()), 0));
  out.insert(out.end(), low.begin(), low.end());
  out.insert(out.end(), high.begin(), high.end());
  return out;
}

}  // namespace

std::vector<sock_filter> system_call_filter(std::uint64_t capabilities) {
  if (kArchitecture == 0) return {};
  std::vector<Range> ranges{{0, Verdict::kAllow}};
  for (const auto& [call, verdict] : verdicts(capabilities)) {
    const auto before = ranges.back().verdict;
    if (ranges.back().first == call) {
      ranges.back().verdict = verdict;
    } else if (before != verdict) {
      ranges.push_back({call, verdict});
    }
    if (verdict != Verdict::kAllow) ranges.push_back({call + 1, Verdict::kAllow});
  }
  ranges.push_back({kLast + 1, Verdict::kUnknown});
  std::vector<Range> merged;
  for (const auto& range : ranges) {
    if (!merged.empty() && merged.back().first == range.first) merged.pop_back();
    if (!merged.empty() && merged.back().verdict == range.verdict) continue;
    merged.push_back(range);
  }
  auto out = filter_head();
  const auto rest = search(merged, 0, merged.size());
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

const std::vector<sock_filter>& known_filter(std::uint64_t capabilities) {
  static std::map<std::uint64_t, std::vector<sock_filter>> known;
  const auto found = known.find(capabilities);
  if (found != known.end()) return found->second;
  return known[capabilities] = system_call_filter(capabilities);
}

std::vector<sock_filter> filter_head() {
  if (kArchitecture == 0) return {};
  std::vector<sock_filter> out{load(offsetof(seccomp_data, arch)),
                               jump(BPF_JEQ, kArchitecture, 1, 0),
                               answer(kRefuse),
                               load(offsetof(seccomp_data, nr))};
  if (kOtherAbi != 0) {
    out.push_back(jump(BPF_JGE, kOtherAbi, 0, 1));
    out.push_back(answer(kRefuse));
  }
  return out;
}

bool install_filter(const std::vector<sock_filter>& filter) {
  sock_fprog program{static_cast<unsigned short>(filter.size()),
                     const_cast<sock_filter*>(filter.data())};
  return filter.empty() || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace muster::agent::process
