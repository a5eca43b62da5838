#include "net/loop/short_slices.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace muster::net {
namespace {

/// The kernel's struct sched_attr in its first form, which C libraries of this age do not declare.
struct Attributes {
  std::uint32_t size = sizeof(Attributes);
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0;  // of SCHED_OTHER: the slice
  std::uint64_t deadline_ns = 0;
  std::uint64_t period_ns = 0;
};

constexpr std::uint64_t kSliceNs = 200'000;

}  // namespace

void run_soon() {
  if (::sched_getscheduler(0) != SCHED_OTHER) return;
  Attributes wanted;
  wanted.nice = ::getpriority(PRIO_PROCESS, 0);
  wanted.runtime_ns = kSliceNs;
  ::syscall(SYS_sched_setattr, 0, &wanted, 0);
}

}  // namespace muster::net
