/// The table of commands: names, flags, help.
#include "cli/cli.h"
#include "cli/shell/commands.h"
#include "cli/submit/submit.h"

namespace muster::cli {
namespace {

Flag type_flag_spec() {
  return {.name = "type",
          .shorthand = 'T',
          .help = "the training type: mpijob, pytorchjob, tfjob … or their short names",
          .completes = Completes::kTypes};
}
Flag yes(std::string name,
         char shorthand,
         std::string help,
         std::vector<std::string> deprecated = {}) {
  return {.name = std::move(name),
          .shorthand = shorthand,
          .type = FlagType::kBool,
          .value = "false",
          .help = std::move(help),
          .deprecated = std::move(deprecated)};
}
Flag output(std::vector<std::string> words) {
  std::string help = "output format: ";
  for (const std::string& word : words) help += word + (word == words.back() ? "" : ", ");
  return {.name = "output",
          .shorthand = 'o',
          .help = std::move(help),
          .completes = Completes::kWords,
          .words = std::move(words)};
}
Flag all_namespaces() {
  return yes("all-namespaces", 'A', "show all the namespaces", {"allNamespaces"});
}
Flag instance() {
  return {.name = "instance",
          .shorthand = 'i',
          .help = "the instance (pod) of the job; the chief unless given",
          .completes = Completes::kInstances};
}
Flag container() {
  return {.name = "container",
          .shorthand = 'c',
          .help = "the container of the instance; the first unless given"};
}

Command command(std::string name,
                std::string arguments,
                std::string summary,
                CommandFunction work,
                Needs needs = Needs::kCluster) {
  Command made;
  made.name = std::move(name);
  made.arguments = std::move(arguments);
  made.summary = std::move(summary);
  if (work != nullptr) made.run = InSession{work, needs};
  return made;
}

Command submit() {
  Command made = command("submit", "", "Submit a training job", nullptr);
  made.children = submit_commands();
  return made;
}

Command get() {
  Command made = command("get", "JOB", "Display a training job and its instances", &run_get);
  made.completes = Completes::kJobs;
  made.flags = {type_flag_spec(),
                output({"wide", "json", "yaml", "name"}),
                yes("events", 'e', "show the events of the instances"),
                yes("gpus", 'g', "show the GPUs of the instances"),
                yes("watch", 'w', "keep showing changes until the job is finished")};
  made.examples = "  muster get medium\n  muster get medium -o json\n";
  return made;
}

Command list() {
  Command made = command("list", "", "List the training jobs, newest first", &run_list);
  made.aliases = {"ls"};
  made.flags = {
      all_namespaces(),
      type_flag_spec(),
      output({"wide", "json", "yaml", "name"}),
      yes("quiet", 'q', "names only, one per line"),
      {.name = "status",
       .help = "only jobs in this status, such as RUNNING",
       .completes = Completes::kWords,
       .words = {"RUNNING", "PENDING", "QUEUING", "SUSPENDED", "SUCCEEDED", "FAILED"}},
      {.name = "queue", .help = "only jobs of this queue", .completes = Completes::kQueues}};
  return made;
}

Command top() {
  Command made = command("top", "", "Display GPU use of nodes or jobs", nullptr);
  Command node = command("node", "[NODE…]", "Display the GPUs of the nodes", &run_top_node);
  node.aliases = {"nodes"};
  node.completes = Completes::kNodes;
  node.flags = {yes("details", 'd', "display the instances on each node"),
                {.name = "gpu-mode",
                 .shorthand = 'm',
                 .help = "only nodes of this mode: n(none), e(exclusive), t(topology), s(share)",
                 .completes = Completes::kWords,
                 .words = {"none", "exclusive", "topology", "share"}},
                yes("share", 's', "only nodes that share GPUs"),
                output({"wide", "json", "yaml"}),
                yes("refresh", 'r', "display again every 2 seconds"),
                yes("metric", 0, "accepted; GPU metrics are shown where there are any")};
  Command job = command("job", "[JOB]", "Display the GPUs of the jobs", &run_top_job);
  job.aliases = {"jobs"};
  job.completes = Completes::kJobs;
  job.flags = {all_namespaces(),
               type_flag_spec(),
               output({"wide", "json", "yaml"}),
               instance(),
               yes("refresh", 'r', "display again every 2 seconds")};
  made.children = {node, job};
  return made;
}

Command logs() {
  Command made =
      command("logs", "JOB", "Print the log of an instance of a training job", &run_logs);
  made.aliases = {"log"};
  made.completes = Completes::kJobs;
  made.flags = {yes("follow", 'f', "keep printing until the instance ends"),
                {.name = "since", .help = "only lines newer than this, such as 1h30m"},
                {.name = "since-time", .help = "only lines after this time (RFC 3339)"},
                {.name = "tail",
                 .shorthand = 't',
                 .type = FlagType::kInt,
                 .value = "-1",
                 .help = "only the last lines; -1 for all"},
                yes("timestamps", 0, "begin each line with its time"),
                instance(),
                container(),
                type_flag_spec()};
  return made;
}

Command attach() {
  Command made = command(
      "attach", "JOB [-- COMMAND…]", "Run a command, or a shell, inside an instance", &run_attach);
  made.completes = Completes::kJobs;
  made.flags = {instance(), container(), type_flag_spec()};
  return made;
}

Command remove() {
  Command made = command("delete", "JOB…", "Delete training jobs", &run_delete);
  made.aliases = {"del"};
  made.completes = Completes::kJobs;
  made.flags = {type_flag_spec()};
  return made;
}

Command prune() {
  Command made =
      command("prune", "", "Delete finished training jobs that are old enough", &run_prune);
  made.details =
      "Only jobs that succeeded or failed are deleted; running, waiting and suspended ones stay.";
  made.flags = {{.name = "since",
                 .shorthand = 's',
                 .type = FlagType::kDuration,
                 .value = "0s",
                 .help = "delete finished jobs at least this old, such as 24h"},
                all_namespaces(),
                yes("dry-run", 0, "only print what would be deleted")};
  return made;
}

Command suspend(bool resume) {
  Command made =
      resume ? command("resume", "JOB…", "Queue suspended jobs again", &run_resume)
             : command(
                   "suspend", "JOB…", "Stop jobs and keep them, to be resumed later", &run_suspend);
  made.completes = Completes::kJobs;
  made.flags = {type_flag_spec()};
  return made;
}

Command queue() {
  Command made = command("queue", "", "Show and change the queues", nullptr);
  const std::vector<Flag> spec{
      {.name = "weight",
       .type = FlagType::kInt,
       .value = "1",
       .help = "share of the cluster relative to other queues"},
      {.name = "capability", .help = "the most it may use, such as nvidia.com/gpu=8,cpu=64"},
      {.name = "deserved", .help = "what it gets back from others when it needs it"},
      {.name = "guarantee", .help = "always kept free for it"},
      {.name = "parent", .help = "the queue above it", .completes = Completes::kQueues},
      {.name = "priority", .type = FlagType::kInt, .value = "0", .help = "higher is served first"},
      {.name = "reclaimable",
       .type = FlagType::kBool,
       .value = "true",
       .help = "others may take back what it borrowed"}};
  Command list = command("list", "", "List the queues", &run_queue_list);
  list.aliases = {"ls"};
  list.flags = {output({"json", "yaml"})};
  Command get = command("get", "QUEUE", "Display a queue", &run_queue_get);
  get.flags = {output({"json", "yaml"})};
  Command create = command("create", "QUEUE", "Create a queue", &run_queue_create);
  create.flags = spec;
  create.flags.push_back(yes("dry-run", 0, "print the object and create nothing"));
  create.examples =
      "  muster queue create vision --weight 2 --deserved nvidia.com/gpu=8 --guarantee nvidia.com/gpu=4\n";
  Command set = command("set", "QUEUE", "Change a queue", &run_queue_set);
  set.flags = spec;
  set.examples = "  muster queue set vision --capability nvidia.com/gpu=16\n";
  Command open = command("open", "QUEUE…", "Let jobs of the queue start", &run_queue_open);
  Command close = command("close", "QUEUE…", "Start nothing more from the queue", &run_queue_close);
  Command remove = command("delete", "QUEUE…", "Delete queues", &run_queue_delete);
  made.children = {list, get, create, set, open, close, remove};
  for (Command& child : made.children) {
    if (child.name != "list" && child.name != "create") child.completes = Completes::kQueues;
  }
  return made;
}

Command priority() {
  Command made = command("priority", "", "Show and change the priority classes", nullptr);
  Command list =
      command("list", "", "List the priority classes, highest first", &run_priority_list);
  list.aliases = {"ls"};
  Command create = command("create", "NAME", "Create a priority class", &run_priority_create);
  create.flags = {{.name = "value",
                   .type = FlagType::kInt,
                   .value = "0",
                   .help = "higher goes first",
                   .required = true},
                  {.name = "description", .help = "what it is for"},
                  yes("default", 0, "for jobs that name none"),
                  yes("never-preempts", 0, "its jobs go first but evict nobody")};
  create.examples = "  muster priority create critical --value 1000000\n";
  Command remove = command("delete", "NAME…", "Delete priority classes", &run_priority_delete);
  remove.completes = Completes::kPriorities;
  made.children = {list, create, remove};
  return made;
}

Command explain() {
  Command made = command("explain",
                         "JOB|POD|KIND/NAME",
                         "Explain why a job or a pod waits, or what happened to it",
                         &run_explain);
  made.aliases = {"why"};
  made.details =
      "KIND is pod, job, deployment, statefulset, daemonset, queue, node or vc (a virtual cluster of cells). A name without a kind is a training job's, else that of any of these with "
      "pods.";
  made.examples =
      "  muster explain medium\n  muster explain pod/medium-worker-0\n  muster explain queue/research\n  muster explain node/gpu-1\n";
  made.completes = Completes::kJobs;
  made.flags = {type_flag_spec()};
  return made;
}

Command when() {
  Command made = command("when", "[JOB…]", "Show when waiting jobs will start", &run_when);
  made.details =
      "START is the median forecast, 8 in 10 starts lie in RANGE, and BASIS is what it rests on: known (those before it declare how long they last), learned (from runs like them), "
      "or none, in which case no time is given. With --file or --gpus it is about a job that is not submitted: whether it would start now and where, wait and until when, or be refused, and what would "
      "start at once instead. Nothing is stored.";
  made.examples =
      "  muster when\n  muster when medium -o json\n  muster when --queue research --watch\n  muster when -f job.yaml --exit-code\n  muster when --gpus 32 --tasks 4 --for 2h\n";
  made.completes = Completes::kJobs;
  made.flags = {
      all_namespaces(),
      {.name = "queue", .help = "what waits in this queue", .completes = Completes::kQueues},
      {.name = "limit", .type = FlagType::kInt, .value = "100", .help = "show at most this many"},
      yes("watch", 'w', "keep showing changes until nothing waits"),
      {.name = "file",
       .shorthand = 'f',
       .help = "a job that is not submitted; - for standard input",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "gpus",
       .type = FlagType::kInt,
       .help = "ask about a job of this many GPUs that is not submitted"},
      {.name = "tasks",
       .type = FlagType::kInt,
       .value = "1",
       .help = "with --gpus: split into this many tasks that start together"},
      {.name = "for",
       .type = FlagType::kDuration,
       .help = "with --gpus: how long it lasts, such as 2h"},
      yes("exit-code",
          0,
          "with --file or --gpus: exit with 0 if it starts now, 10 if it waits, 11 if it never starts, 12 if it is refused"),
      output({"json"})};
  return made;
}

Command whatif() {
  Command made = command("whatif", "", "Try a change on a copy of the cluster", &run_whatif);
  made.details =
      "Shows what a change would do to waiting and running jobs. The engine simulates both futures on copies, with the same durations; the cluster itself is not changed. Flags may be "
      "repeated and combined; most take a time from now behind an @, such as --drain node-1@2h.";
  made.examples =
      "  muster whatif --add-nodes 4x8\n  muster whatif --drain gpu-1 --drain gpu-2@2h\n  muster whatif --queue research:capability.gpu=64 --stop sweep-17\n  muster whatif --submit job.yamlx10 "
      "--horizon 48h\n";
  const auto list = [](std::string name, std::string value_name, std::string help) {
    Flag flag{.name = std::move(name), .type = FlagType::kList, .help = std::move(help)};
    flag.value_name = std::move(value_name);
    return flag;
  };
  made.flags = {
      list("add-nodes", "NxGPUS[:MODEL]", "add N nodes like an existing one with that many GPUs"),
      list("remove-node", "NODE[@TIME]", "remove the node"),
      list("drain", "NODE[@TIME]", "cordon the node and evict its jobs"),
      list("stop", "JOB[@TIME]", "stop the job"),
      list("submit", "FILE[xN]", "submit the job, N times"),
      list("priority", "JOB:CLASS", "give the job another priority class"),
      list("lasts", "JOB:DURATION", "assume that the job lasts this long"),
      list("queue", "QUEUE:KEY=VALUE", "change the queue's weight, state or capability.gpu"),
      {.name = "hived",
       .help = "use this file as HiveD's configuration",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "policy",
       .help = "use the policy in this file",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "file",
       .shorthand = 'f',
       .help = "a list of changes, as the API takes them",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      list("jobs", "JOB", "show these jobs only"),
      {.name = "horizon",
       .type = FlagType::kDuration,
       .value = "24h",
       .help = "how far to look ahead"},
      output({"json"})};
  return made;
}

Command history() {
  Command made = command("history",
                         "[JOB]",
                         "List recorded jobs, deleted ones included, or show what happened to one",
                         &run_history);
  made.details =
      "Times of --since and --until are a date, a time (RFC 3339) or an age, such as 7d or 36h.";
  made.examples =
      "  muster history --since 7d --state FAILED\n  muster history medium\n  muster history -A --export trace > trace.csv && muster sim --trace trace.csv --nodes 64x8\n";
  made.completes = Completes::kJobs;
  made.flags = {
      all_namespaces(),
      {.name = "user", .help = "only jobs of this user"},
      {.name = "queue", .help = "only jobs of this queue", .completes = Completes::kQueues},
      {.name = "state",
       .help = "only jobs in this state",
       .completes = Completes::kWords,
       .words = {"WAITING", "RUNNING", "SUCCEEDED", "FAILED", "STOPPED"}},
      {.name = "since", .help = "only jobs that ended since then"},
      {.name = "until", .help = "only jobs that ended before"},
      {.name = "limit",
       .type = FlagType::kInt,
       .value = "100",
       .help = "show at most this many, newest first"},
      {.name = "export",
       .help = "print in this format instead: trace, which muster sim reads",
       .completes = Completes::kWords,
       .words = {"trace"}},
      output({"json", "csv"})};
  return made;
}

Command report() {
  Command made =
      command("report", "", "Report who used how much, and how long jobs waited", nullptr);
  const Flag from{.name = "from", .help = "since this day: 2026-11-01, or an age (default 30d)"};
  const Flag to{.name = "to", .help = "before this day"};
  const Flag by{
      .name = "by",
      .value = "user",
      .help = "group by user, queue, namespace, kind, model, priority (separated by commas)",
      .completes = Completes::kWords,
      .words = {"user", "queue", "namespace", "kind", "model", "priority"}};
  Command usage = command(
      "usage", "", "Show the GPU hours held, guaranteed and opportunistic", &run_report_usage);
  usage.flags = {by,
                 from,
                 to,
                 {.name = "step",
                  .help = "split each line by time: day",
                  .completes = Completes::kWords,
                  .words = {"day"}},
                 output({"json", "csv"})};
  usage.examples = "  muster report usage --by queue,user --from 2026-11-01 -o csv\n";
  Command waits = command("waits", "", "Show how long jobs waited", &run_report_waits);
  waits.flags = {by, from, to, output({"json", "csv"})};
  Command accuracy =
      command("accuracy", "", "Compare forecast starts with real ones", &run_report_accuracy);
  accuracy.flags = {from, to, output({"json", "csv"})};
  made.children = {usage, waits, accuracy};
  return made;
}

Command data() {
  Command made = command("data", "", "Show the data volumes", nullptr);
  Command list = command("list", "", "List the bound volume claims", &run_data_list);
  list.aliases = {"ls"};
  list.flags = {all_namespaces()};
  made.children = {list};
  return made;
}

Command hidden(std::string name, CommandFunction work, Needs needs) {
  Command made = command(std::move(name), "", "", work, needs);
  made.hidden = true;
  return made;
}

}  // namespace

std::vector<Flag> global_flags() {
  return {
      {.name = "loglevel",
       .value = "info",
       .help = "set the logging level: debug, info, warn, error",
       .completes = Completes::kWords,
       .words = {"debug", "info", "warn", "error"}},
      {.name = "namespace",
       .shorthand = 'n',
       .help = "the namespace of the job",
       .completes = Completes::kNamespaces},
      {.name = "arena-namespace",
       .value = "arena-system",
       .help = "the namespace of arena's own configuration"},
      {.name = "config",
       .help =
           "path to a kube config; by default $KUBECONFIG, inside a pod its service account, then that of `muster up`, then ~/.kube/config",
       .completes = Completes::kFiles},
      {.name = "helm-binary",
       .type = FlagType::kBool,
       .value = "false",
       .help = "accepted; no helm is needed",
       .hidden = true},
      {.name = "pprof",
       .type = FlagType::kBool,
       .value = "false",
       .help = "accepted",
       .hidden = true},
      {.name = "trace",
       .type = FlagType::kBool,
       .value = "false",
       .help = "accepted",
       .hidden = true},
  };
}

command::Section jobs_section() {
  std::vector<Command> all{submit(),
                           get(),
                           list(),
                           top(),
                           logs(),
                           attach(),
                           remove(),
                           prune(),
                           suspend(false),
                           suspend(true),
                           explain(),
                           when(),
                           whatif(),
                           history(),
                           report(),
                           queue(),
                           priority(),
                           data(),
                           command("whoami", "", "Print the current user", &run_whoami),
                           command::man_command(),
                           command::completion_command()};
  Command version = command("version", "", "Print the version", &run_version, Needs::kNothing);
  version.flags = {yes("short", 0, "one line only"),
                   yes("verbose", 'v', "accepted; there are no charts to name")};
  all.push_back(version);
  all.push_back(hidden("__complete", &run_complete, Needs::kClusterIfThere));
  for (const char* name :
       {"serve", "model", "evaluate", "cron", "llm", "scalein", "scaleout", "logviewer"})
    all.push_back(hidden(name, &run_not_offered, Needs::kNothing));
  return {.title = "Jobs",
          .manual_title = "COMMANDS",
          .commands = std::move(all),
          .flags = global_flags()};
}

}  // namespace muster::cli
