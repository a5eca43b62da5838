/// priority: the priority classes that submit's --priority names.
#include <fmt/core.h>

#include <algorithm>

#include "cli/shell/commands.h"
#include "cli/shell/session.h"
#include "cli/view/tabwriter.h"
#include "kube/meta.h"
#include "kube/resources.h"

namespace muster::cli {

Task<int> run_priority_list(Invocation& call) {
  Session& session = call.session;
  auto classes =
      co_await session.cluster().list(client::resources::kPriorityClasses, client::ListOptions{});
  if (!classes) co_return session.failed(classes.error());
  std::sort(
      classes->items.begin(), classes->items.end(), [](const json::Value& a, const json::Value& b) {
        const std::int64_t left = json::int_at(a, "value"), right = json::int_at(b, "value");
        return left != right ? left > right : kube::name_of(a) < kube::name_of(b);
      });
  Rows rows;
  rows.add({"NAME", "VALUE", "DEFAULT", "PREEMPTS", "DESCRIPTION"});
  for (const json::Value& each : classes->items) {
    rows.add({std::string(kube::name_of(each)),
              std::to_string(json::int_at(each, "value")),
              json::bool_at(each, "globalDefault") ? "yes" : "no",
              json::string_at(each, "preemptionPolicy") == "Never" ? "no" : "yes",
              json::text_at(each, "description")});
  }
  session.console.out(rows.text());
  co_return 0;
}

Task<int> run_priority_create(Invocation& call) {
  Session& session = call.session;
  const std::string name = call.values.args[0];
  json::Object made{{"apiVersion", kube::resources::kPriorityClasses.api_version()},
                    {"kind", "PriorityClass"},
                    {"metadata", json::Object{{"name", name}}},
                    {"value", call.values.number("value")}};
  if (const std::string text = call.values.text("description"); !text.empty())
    made["description"] = text;
  if (call.values.yes("default")) made["globalDefault"] = true;
  if (call.values.yes("never-preempts")) made["preemptionPolicy"] = "Never";
  const auto created =
      co_await session.cluster().create(client::resources::kPriorityClasses, "", std::move(made));
  if (!created) co_return session.failed(created.error());
  session.console.out(fmt::format("priorityclass.scheduling.k8s.io/{} created\n", name));
  co_return 0;
}

Task<int> run_priority_delete(Invocation& call) {
  Session& session = call.session;
  int code = 0;
  for (const std::string& name : call.values.args) {
    client::DeleteOptions options;
    const auto removed =
        co_await session.cluster().remove(client::resources::kPriorityClasses, "", name, options);
    if (removed) {
      session.console.out(fmt::format("priorityclass.scheduling.k8s.io \"{}\" deleted\n", name));
    } else {
      code = session.failed(removed.error());
    }
  }
  co_return code;
}

}  // namespace muster::cli
