/// The commands of arena that Muster does not offer: each says what there is instead, or why there
/// is nothing.
#include <fmt/core.h>

#include "cli/shell/commands.h"
#include "cli/shell/session.h"

namespace muster::cli {

Task<int> run_not_offered(Invocation& call) {
  const std::string& name = call.command.name;
  const std::string& program = call.session.program;
  if (name == "logviewer")
    co_return call.session.failed(
        fmt::format("no LOGVIEWER installed; `{} logs JOB` prints the log", program));
  const std::string why = name == "serve" || name == "evaluate" || name == "model"
                              ? "serving and model registries"
                          : name == "cron"            ? "scheduled jobs"
                          : name.starts_with("scale") ? "elastic jobs, whose operator is not here"
                                                      : "this";
  co_return call.session.failed(fmt::format(
      "'{}' is a command of arena that this program does not offer: it runs training jobs, not {}",
      name,
      why));
}

}  // namespace muster::cli
