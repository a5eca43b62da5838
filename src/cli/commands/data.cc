/// `data list`: the volumes that jobs can use.
#include "base/strings.h"
#include "cli/shell/commands.h"
#include "cli/shell/session.h"
#include "cli/view/tabwriter.h"
#include "kube/meta.h"

namespace muster::cli {

Task<int> run_data_list(Invocation& call) {
  Session& session = call.session;
  const bool all = call.values.yes("all-namespaces");
  client::ListOptions options;
  options.ns = all ? "" : session.ns;
  const auto claims =
      co_await session.cluster().list(client::resources::kPersistentVolumeClaims, options);
  if (!claims) co_return session.failed(claims.error());
  Rows rows;
  std::vector<std::string> head{"NAME", "ACCESSMODE", "DESCRIPTION", "OWNER", "AGE"};
  if (all) head.insert(head.begin() + 1, "NAMESPACE");
  rows.add(std::move(head));
  for (const json::Value& claim : claims->items) {
    if (json::string_at(claim, "status", "phase") != "Bound") continue;
    std::vector<std::string> modes;
    for (const json::Value& mode : json::array_at(claim, "spec", "accessModes"))
      modes.push_back(json::text(mode));
    std::vector<std::string> row{std::string(kube::name_of(claim)),
                                 join(modes, ","),
                                 std::string(kube::annotation(claim, "description")),
                                 std::string(kube::annotation(claim, "owner")),
                                 short_human_duration(session.now() - kube::creation_time(claim))};
    if (all) row.insert(row.begin() + 1, std::string(kube::namespace_of(claim)));
    rows.add(std::move(row));
  }
  if (rows.cells.size() == 1) {
    session.console.out("No data volume is found\n");
    co_return 0;
  }
  session.console.out(rows.text());
  co_return 0;
}

}  // namespace muster::cli
