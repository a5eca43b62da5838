/// A seccomp profile: it is refused, or its filter ends whatever the call.
#include <linux/filter.h>

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "agent/process/seccomp_profile.h"

using namespace muster::agent::process;

namespace {

/// As the kernel checks it: every jump leads forward to an instruction, and the last one answers.
bool sound(const std::vector<sock_filter>& filter) {
  for (std::size_t i = 0; i < filter.size(); ++i) {
    const auto& step = filter[i];
    if (BPF_CLASS(step.code) != BPF_JMP) continue;
    const auto left = filter.size() - i - 1;
    if (BPF_OP(step.code) == BPF_JA ? step.k >= left : step.jt >= left || step.jf >= left)
      return false;
  }
  return !filter.empty() && BPF_CLASS(filter.back().code) == BPF_RET;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto filter = filter_of_profile({reinterpret_cast<const char*>(data), size});
  if (filter && !sound(*filter)) std::abort();
  return 0;
}
