/// Which system calls a container may make.
///
/// The kernel's calls are a pod's shortest way to the machine, and most programs need half of them.
/// Calls that mount, make namespaces, load code into the kernel, trace the machine or reach its
/// keys are refused (EPERM), those the filter does not know are said not to exist (ENOSYS), so that
/// programs fall back. Capabilities that a container is given open the calls that go with them.
/// What training needs beyond others' defaults is allowed: ptrace and process_vm_readv (Open MPI,
/// py-spy), mbind and set_mempolicy (NUMA).
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <vector>

namespace muster::agent::process {

/// `capabilities`: a set of bits, as of capability_set(). Empty where this processor's calls are
/// not known.
std::vector<sock_filter> system_call_filter(std::uint64_t capabilities);
/// The same for a process with one thread, which makes each once: those that it forks have it, too.
const std::vector<sock_filter>& known_filter(std::uint64_t capabilities);
/// How every filter begins: it refuses calls of other processors and has loaded the call's number.
/// Empty where this processor's calls are not known.
std::vector<sock_filter> filter_head();
/// For the calling thread and what it becomes. False: errno says why. Needs SYS_ADMIN or
/// no_new_privs.
bool install_filter(const std::vector<sock_filter>& filter);

}  // namespace muster::agent::process
