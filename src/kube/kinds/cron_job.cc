// CronJob.
#include <fmt/core.h>

#include "base/strings.h"
#include "base/time_zone.h"
#include "kube/kinds/causes.h"
#include "kube/kinds/defaults.h"
#include "kube/kinds/families.h"
#include "kube/kinds/kind.h"
#include "kube/kinds/put.h"
#include "kube/kinds/rules.h"
#include "kube/table/table_cells.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Object;
using json::Value;

void default_cron_job(Object& object) {
  Object& spec = object_at(object, "spec");
  put_text(spec, "concurrencyPolicy", "Allow");
  put(spec, "suspend", false);
  put(spec, "successfulJobsHistoryLimit", 3);
  put(spec, "failedJobsHistoryLimit", 1);
  // The Job in the template gets its own defaults when it is created; only its pods are defaulted
  // here.
  if (Object* job = find(spec, "jobTemplate")) {
    if (Object* job_spec = find(*job, "spec")) default_template(*job_spec);
  }
}

void validate_time_zone(const Value& zone, Causes& causes) {
  if (!zone.is_string()) return;
  const std::string_view name = json::as_string(zone);
  const auto bad = [&](std::string_view why) {
    causes.invalid("spec.timeZone", quoted(name), std::string(why));
  };
  if (name.empty()) return bad("timeZone must be nil or non-empty string");
  if (to_lower(name) == "local")
    return bad(
        "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones");
  if (const auto found = TimeZone::find(name); !found) bad(found.error().message);
}

void validate_cron_job(const Value& object, const Value*, Causes& causes) {
  const Value& spec = json::at(object, "spec");
  const std::string_view schedule = json::string_at(spec, "schedule");
  if (schedule.empty()) {
    causes.required("spec.schedule");
  } else if (!schedule.starts_with('@') && split_nonempty(schedule, ' ').size() != 5) {
    causes.invalid("spec.schedule",
                   quoted(schedule),
                   fmt::format("expected exactly 5 fields, found {}: [{}]",
                               split_nonempty(schedule, ' ').size(),
                               schedule));
  }
  validate_enum(json::at(spec, "concurrencyPolicy"),
                "spec.concurrencyPolicy",
                {"Allow", "Forbid", "Replace"},
                causes);
  for (const std::string_view key :
       {"startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"}) {
    validate_non_negative(json::at(spec, key), fmt::format("spec.{}", key), causes);
  }
  validate_time_zone(json::at(spec, "timeZone"), causes);
  validate_job_spec(json::at(spec, "jobTemplate", "spec"), "spec.jobTemplate.spec", false, causes);
}

Array cron_job_cells(const Value& object, Time now) {
  const Value& spec = json::at(object, "spec");
  const auto [names, images] =
      containers_of(json::at(spec, "jobTemplate", "spec", "template", "spec"));
  const Value& last = json::at(object, "status", "lastScheduleTime");
  const Value& selector = json::at(spec, "jobTemplate", "spec", "selector");
  return {name_of(object),
          json::text_at(spec, "schedule"),
          or_none(json::text_at(spec, "timeZone")),
          json::bool_at(spec, "suspend") ? "True" : "False",
          static_cast<std::int64_t>(json::array_at(object, "status", "active").size()),
          last.is_null() ? "<none>" : age_of(last, now),
          age_of(creation_time(object), now),
          names,
          images,
          selector.is_null() ? "<none>" : selector_text(selector)};
}

}  // namespace

std::vector<KindRules> families::cron_job() {
  using namespace columns;
  return {{.group = "batch",
           .kind = "CronJob",
           .defaults = default_cron_job,
           .validate = validate_cron_job,
           .columns = {name_column(),
                       text("Schedule"),
                       text("Timezone"),
                       boolean("Suspend"),
                       integer("Active"),
                       text("Last Schedule"),
                       text("Age"),
                       text("Containers", kWide),
                       text("Images", kWide),
                       text("Selector", kWide)},
           .cells = cron_job_cells,
           .generation = true}};
}

}  // namespace muster::kube
