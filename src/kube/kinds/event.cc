// Event, in the core group and in events.k8s.io: one object with two sets of names.
#include <fmt/core.h>

#include "base/strings.h"
#include "kube/kinds/causes.h"
#include "kube/kinds/families.h"
#include "kube/kinds/kind.h"
#include "kube/kinds/names.h"
#include "kube/kinds/rules.h"
#include "kube/kinds/validate.h"
#include "kube/names.h"
#include "kube/table/table_cells.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Object;
using json::Value;

void validate_event(const Value& object, bool new_api, Causes& causes) {
  const Value& involved = json::at(object, new_api ? "regarding" : "involvedObject");
  const std::string field = new_api ? "regarding.namespace" : "involvedObject.namespace";
  const std::string_view space = json::string_at(involved, "namespace");
  const std::string_view own = namespace_of(object);
  if (space.empty()) {
    if (!own.empty() && own != "default" && own != "kube-system")
      causes.invalid(field, "\"\"", "does not match event.namespace");
  } else if (space != own) {
    causes.invalid(field, quoted(space), "does not match event.namespace");
  }
  if (!new_api) return;
  const std::string_view type = json::string_at(object, "type");
  const bool known = type == "Normal" || type == "Warning";
  if (json::is_empty(json::at(object, "eventTime"))) {
    causes.required("eventTime");
    // An event of old, to which the rest does not apply.
    if (!known) causes.invalid("type", "\"\"", fmt::format("has invalid value: {}", type));
    return;
  }
  const std::string_view controller = json::string_at(object, "reportingController");
  if (controller.empty()) causes.required("reportingController");
  for (const std::string& problem : qualified_name_problems(controller))
    causes.invalid("reportingController", quoted(controller), problem);
  if (json::is_empty(json::at(object, "reportingInstance"))) causes.required("reportingInstance");
  if (json::is_empty(json::at(object, "action"))) causes.required("action");
  if (json::is_empty(json::at(object, "reason"))) causes.required("reason");
  if (!known) causes.invalid("type", "\"\"", fmt::format("has invalid value: {}", type));
  if (json::string_at(object, "note").size() > 1024)
    causes.invalid(
        "note", quoted(json::string_at(object, "note")), "can have at most 1024 characters");
}

Array event_cells(const Value& event, Time now) {
  const bool new_api = json::at(event, "regarding").is_object();
  const Value& involved = json::at(event, new_api ? "regarding" : "involvedObject");
  const Value& source = json::at(event, new_api ? "deprecatedSource" : "source");
  const auto own = [&](std::string_view plain, std::string_view deprecated) -> const Value& {
    return json::at(event, new_api ? deprecated : plain);
  };
  const Value& first = own("firstTimestamp", "deprecatedFirstTimestamp");
  const Value& last = own("lastTimestamp", "deprecatedLastTimestamp");
  const Value& event_time = json::at(event, "eventTime");
  const Value& series = json::at(event, "series");
  const auto present = [](const Value& time) { return !json::as_string(time).empty(); };
  const Value& first_seen = present(first) ? first : event_time;
  const Value& last_seen = present(json::at(series, "lastObservedTime"))
                               ? json::at(series, "lastObservedTime")
                           : present(last)  ? last
                           : present(first) ? first
                                            : event_time;
  std::int64_t count = json::as_int(own("count", "deprecatedCount"));
  if (series.is_object())
    count = json::int_at(series, "count");
  else if (count == 0)
    count = 1;
  std::string component = json::text_at(source, "component");
  std::string host = json::text_at(source, "host");
  if (component.empty())
    component = json::text_at(event, new_api ? "reportingController" : "reportingComponent");
  if (host.empty()) host = json::text_at(event, "reportingInstance");
  const std::string object = fmt::format(
      "{}/{}", to_lower(json::string_at(involved, "kind")), json::string_at(involved, "name"));
  const std::string message =
      std::string(trim(json::string_at(event, new_api ? "note" : "message")));
  return {age_of(last_seen, now),
          json::text_at(event, "type"),
          json::text_at(event, "reason"),
          object,
          json::text_at(involved, "fieldPath"),
          host.empty() ? component : component + ", " + host,
          message,
          age_of(first_seen, now),
          count,
          name_of(event)};
}

}  // namespace

std::vector<KindRules> families::event() {
  using namespace columns;
  return {
      {.group = "",
       .kind = "Event",
       .validate =
           [](const Value& o, const Value*, Causes& causes) { validate_event(o, false, causes); },
       .columns = {text("Last Seen"),
                   text("Type"),
                   text("Reason"),
                   text("Object"),
                   text("Subobject", kWide),
                   text("Source", kWide),
                   text("Message"),
                   text("First Seen", kWide),
                   text("Count", kWide),
                   name_column(kWide)},
       .cells = event_cells,
       .fields = {"metadata.name",
                  "metadata.namespace",
                  "involvedObject.kind",
                  "involvedObject.namespace",
                  "involvedObject.name",
                  "involvedObject.uid",
                  "involvedObject.apiVersion",
                  "involvedObject.resourceVersion",
                  "involvedObject.fieldPath",
                  "reason",
                  "reportingComponent",
                  "source",
                  "type"},
       .creates_on_update = true},
      {.group = groups::kEvents,
       .kind = "Event",
       .validate =
           [](const Value& o, const Value*, Causes& causes) { validate_event(o, true, causes); },
       .columns = {text("Last Seen"),
                   text("Type"),
                   text("Reason"),
                   text("Object"),
                   text("Subobject", kWide),
                   text("Source", kWide),
                   text("Message"),
                   text("First Seen", kWide),
                   text("Count", kWide),
                   name_column(kWide)},
       .cells = event_cells,
       .fields = {"metadata.name",
                  "metadata.namespace",
                  "regarding.kind",
                  "regarding.namespace",
                  "regarding.name",
                  "regarding.uid",
                  "regarding.apiVersion",
                  "regarding.resourceVersion",
                  "regarding.fieldPath",
                  "reason",
                  "reportingController",
                  "type"},
       .creates_on_update = true}};
}

}  // namespace muster::kube
