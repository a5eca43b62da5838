/// The functions behind the commands, one per command; the table in registry.cc names them.
#pragma once

#include <string>
#include <vector>

#include "cli/shell/session.h"

namespace muster::cli {

Task<int> run_get(Invocation& invocation);
Task<int> run_list(Invocation& invocation);
Task<int> run_top_node(Invocation& invocation);
Task<int> run_top_job(Invocation& invocation);
Task<int> run_logs(Invocation& invocation);
Task<int> run_attach(Invocation& invocation);
Task<int> run_delete(Invocation& invocation);
Task<int> run_prune(Invocation& invocation);
Task<int> run_suspend(Invocation& invocation);
Task<int> run_resume(Invocation& invocation);
Task<int> run_queue_list(Invocation& invocation);
Task<int> run_queue_get(Invocation& invocation);
Task<int> run_queue_create(Invocation& invocation);
Task<int> run_queue_set(Invocation& invocation);
Task<int> run_queue_open(Invocation& invocation);
Task<int> run_queue_close(Invocation& invocation);
Task<int> run_queue_delete(Invocation& invocation);
Task<int> run_priority_list(Invocation& invocation);
Task<int> run_priority_create(Invocation& invocation);
Task<int> run_priority_delete(Invocation& invocation);
Task<int> run_explain(Invocation& invocation);
/// The part of `explain` that HiveD's cells answer.
Task<int> explain_virtual_cluster(Session& session, std::string name);
Task<int> run_when(Invocation& invocation);
/// The part of `when` that is about jobs that are not submitted.
Task<int> check_jobs(Invocation& invocation);
Task<int> run_whatif(Invocation& invocation);
Task<int> run_history(Invocation& invocation);
Task<int> run_report_usage(Invocation& invocation);
Task<int> run_report_waits(Invocation& invocation);
Task<int> run_report_accuracy(Invocation& invocation);
Task<int> run_data_list(Invocation& invocation);
Task<int> run_whoami(Invocation& invocation);
Task<int> run_version(Invocation& invocation);
Task<int> run_complete(Invocation& invocation);
/// Commands of arena that need systems Muster does not run: says so.
Task<int> run_not_offered(Invocation& invocation);

/// The flags of every command that arena has too.
std::vector<Flag> global_flags();

}  // namespace muster::cli
