/// `whoami`: who the cluster takes the user for, as arena tells it.
#include "base/md5.h"
#include "base/strings.h"
#include "cli/shell/commands.h"
#include "cli/shell/session.h"

namespace muster::cli {

Task<int> run_whoami(Invocation& call) {
  Session& session = call.session;
  const std::string user = co_await session.user();
  const std::string arena_ns = call.values.text("arena-namespace");
  const auto config =
      co_await session.cluster().get(client::resources::kConfigMaps, arena_ns, "arena-config");
  bool admin = false;
  if (config) {
    for (const std::string& each : split_nonempty(
             replace_all(json::string_at(*config, "data", "adminUsers"), "\n", ","), ',')) {
      admin = admin || trim(each) == user;
    }
  }
  session.console.out(
      json::dump(json::Object{{"Name", user}, {"Id", md5_hex(user)}, {"IsAdminUser", admin}}) +
      "\n");
  co_return 0;
}

}  // namespace muster::cli
