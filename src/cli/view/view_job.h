/// Jobs as text: the layouts of `get`, `list` and `top job`. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/view/job.h"
#include "json/json.h"

namespace muster::cli {

/// `get`: the header lines and the table that arena's documents show. `columns` limits the width
/// (0: none).
std::string view_job(const Job& job, int columns);
/// `get -o wide`: the aligned key block and an indented table.
std::string view_job_wide(const Job& job);
/// The `GPUs:` block of `get -g`.
std::string view_job_gpus(const Job& job);
/// The `Events:` block of `get -e`: events of the job's instances, grouped by object.
std::string view_job_events(const std::vector<const json::Value*>& events, Time now);
json::Value job_as_json(const Job& job);
/// The same for YAML, whose last three keys arena spells in lower case.
json::Value job_as_yaml(const Job& job);
/// JSON with four blanks, as arena indents it.
std::string dump_arena_json(const json::Value& value);
/// YAML that keeps the order of keys.
std::string dump_ordered_yaml(const json::Value& value);

struct ListView {
  bool all_namespaces = false;
  int columns = 0;
};
std::string view_jobs(const std::vector<Job>& jobs, const ListView& view);
std::string view_top_jobs(const std::vector<Job>& jobs, const ListView& view);
/// `top job JOB`; `instance` empty for all.
std::string view_top_job(const Job& job, const std::string& instance);

}  // namespace muster::cli
