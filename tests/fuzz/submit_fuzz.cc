/// `arena submit`: any words, one a line, the first of which chooses the kind of job. The flags are
/// refused or the objects planned.
#include <cstdint>
#include <string_view>

#include "base/strings.h"
#include "cli/submit/submit.h"
#include "command/flags.h"
#include "json/json.h"

using namespace muster;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<cli::Command> kCommands = cli::submit_commands();
  auto words = split(std::string_view(reinterpret_cast<const char*>(data), size), '\n');
  const std::string type = cli::training_type(words.front());
  words.erase(words.begin());
  for (const auto& each : kCommands) {
    if (cli::training_type(each.name) != type) continue;
    const auto values = command::parse_flags(each.flags, {}, words);
    // --config-file reads files, which are not the input.
    if (!values || values->given("config-file")) continue;
    const auto plan =
        cli::plan_submit({type, "default", "alice", join(values->args, " "), {}}, *values);
    if (plan) (void)json::dump(plan->job);
  }
  return 0;
}
