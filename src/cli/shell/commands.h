/// The functions behind the commands, one per command; the table in registry.cc names them.
#pragma once

#include <string>
#include <vector>

#include "cli/shell/flags.h"

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
Task<int> run_data_list(Invocation& invocation);
Task<int> run_whoami(Invocation& invocation);
Task<int> run_version(Invocation& invocation);
Task<int> run_man(Invocation& invocation);
Task<int> run_completion(Invocation& invocation);
Task<int> run_complete(Invocation& invocation);
/// Commands of arena that need systems Muster does not run: says so.
Task<int> run_not_offered(Invocation& invocation);

/// The command tree, built once.
const std::vector<Command>& registry();
const std::vector<Flag>& global_flags();

/// The names of main/'s commands (add_foreign_commands).
std::vector<std::string> foreign_command_words();
/// By name or alias; nullptr when there is none.
const Command* find_child(const std::vector<Command>& commands, const std::string& word);

/// The help page of a command; `path` is "muster submit mpijob".
std::string command_help(const Command& command, const std::string& path);
std::string man_page();

}  // namespace muster::cli
