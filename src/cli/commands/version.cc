/// `version`: of this program, and of the Kubernetes that `muster up` serves.
#include <fmt/core.h>

#include "cli/shell/commands.h"
#include "cli/shell/session.h"
#include "kube/names.h"

namespace muster::cli {
namespace {

constexpr const char* kVersion = MUSTER_VERSION;
#if defined(__aarch64__)
constexpr const char* kPlatform = "linux/arm64";
#else
constexpr const char* kPlatform = "linux/amd64";
#endif

}  // namespace

Task<int> run_version(Invocation& call) {
  Session& session = call.session;
  session.console.out(fmt::format("{}: v{}\n", session.program, kVersion));
  if (call.values.yes("short")) co_return 0;
  session.console.out(fmt::format("  Kubernetes: {}\n  Compiler: {}\n  Platform: {}\n",
                                  kube::kKubernetesVersion,
                                  __VERSION__,
                                  kPlatform));
  co_return 0;
}

}  // namespace muster::cli
