#include "cli/submit/submit.h"
#include "cli/submit/submit_run.h"

namespace muster::cli {
namespace {

Flag text(std::string name,
          std::string value,
          std::string help,
          std::vector<std::string> deprecated = {}) {
  return {.name = std::move(name),
          .type = FlagType::kString,
          .value = std::move(value),
          .help = std::move(help),
          .deprecated = std::move(deprecated)};
}
Flag boolean(std::string name, std::string help) {
  return {
      .name = std::move(name), .type = FlagType::kBool, .value = "false", .help = std::move(help)};
}
Flag number(std::string name,
            std::string value,
            std::string help,
            std::vector<std::string> deprecated = {}) {
  return {.name = std::move(name),
          .type = FlagType::kInt,
          .value = std::move(value),
          .help = std::move(help),
          .deprecated = std::move(deprecated)};
}
Flag list(std::string name,
          char shorthand,
          std::string help,
          std::vector<std::string> deprecated = {}) {
  return {.name = std::move(name),
          .shorthand = shorthand,
          .type = FlagType::kList,
          .help = std::move(help),
          .deprecated = std::move(deprecated)};
}
Flag period(std::string name, std::string help) {
  return {
      .name = std::move(name), .type = FlagType::kDuration, .value = "0s", .help = std::move(help)};
}
Flag choice(std::string name,
            std::string value,
            std::string help,
            std::vector<std::string> words,
            std::vector<std::string> deprecated = {}) {
  return {.name = std::move(name),
          .value = std::move(value),
          .help = std::move(help),
          .deprecated = std::move(deprecated),
          .completes = Completes::kWords,
          .words = std::move(words)};
}

void append(std::vector<Flag>& flags, std::vector<Flag> more) {
  for (Flag& flag : more) flags.push_back(std::move(flag));
}

/// What to do after the objects are made; for every type.
std::vector<Flag> run_flags() {
  Flag dry = boolean("dry-run", "print the objects as YAML and create nothing");
  Flag wait{
      .name = "wait",
      .help =
          "wait until the job is finished, or with --wait=running until it runs; exit 3 if it fails",
      .bare = "finished",
      .completes = Completes::kWords,
      .words = {"finished", "running"}};
  Flag timeout = period("timeout", "give up waiting after this long (exit 4); 0 waits forever");
  return {dry, wait, timeout};
}

/// A table: one entry for each flag that all kinds of job have, in the order of arena's help.
std::vector<Flag> shared_flags() {
  std::vector<Flag> flags{
      {.name = "name", .help = "the name of the job", .required = true},
      text("image", "", "the container image"),
      number("gpus", "0", "GPUs of each worker"),
      list("device", 0, "devices of another kind and their number, such as amd.com/gpu=1"),
      number("workers", "1", "number of workers"),
      number("retry", "0", "how often to retry"),
      text("working-dir",
           "/root",
           "the working directory; with --sync-mode the code is in its folder code",
           {"workingDir"}),
      list("env", 'e', "an environment variable: \"--env NAME=VALUE\""),
      list("data", 'd', "a volume claim to mount, as <claim>:<mount_point>"),
      list("data-dir",
           0,
           "a folder of the node to mount at the same path, such as /data",
           {"dataDir"}),
      list("annotation", 'a', "an annotation: \"--annotation=key=value\""),
      list("label", 'l', "a label: \"--label=key=value\""),
      boolean("rdma", "enable RDMA"),
      boolean("gang", "enable gang scheduling: all workers start together or none does"),
      {.name = "priority",
       .shorthand = 'p',
       .help = "priority class name",
       .completes = Completes::kPriorities},
      {.name = "queue",
       .help = "queue the job before it is admitted; --queue=NAME puts it into that queue",
       .bare = "true",
       .completes = Completes::kQueues},
      choice("on-preempt",
             "",
             "what to do when the job loses its GPUs: fail, or requeue to wait and start again",
             {"fail", "requeue"}),
      period("expected-duration",
             "how long it will run, if known: lets it fill a gap before a larger job starts"),
      list(
          "toleration",
          0,
          "run on nodes with this taint too: \"--toleration key=value:effect,operator\" or \"--toleration all\""),
      list("selector", 0, "only nodes with this label: \"--selector=key=value\""),
      list(
          "config-file",
          0,
          "a file to put into the containers: \"--config-file <host_path_file>:<container_path_file>\""),
      list("image-pull-secret", 0, "the name of a secret for a private registry"),
      text("image-pull-policy", "Always", "when to pull the image"),
      text("shell", "sh", "the shell that runs the command: bash or sh"),
      text("scheduler", "", "the scheduler of the pods"),
      boolean("hostNetwork", "use the host's network namespace"),
      boolean("hostIPC", "use the host's ipc namespace"),
      boolean("hostPID", "use the host's pid namespace"),
      text("model-name", "", "model name"),
      text("model-source", "", "model source"),
      choice(
          "sync-mode", "", "how the code is fetched: git or rsync", {"git", "rsync"}, {"syncMode"}),
      text(
          "sync-source",
          "",
          "where the code is: for rsync such as host::backup/train.zip, for git such as https://github.com/kubeflow/tf-operator.git",
          {"syncSource"}),
      text("sync-image", "", "the image that fetches the code", {"syncImage"}),
      boolean("tensorboard", "enable tensorboard"),
      text("tensorboard-image", "", "the docker image for tensorboard", {"tensorboardImage"}),
      text("logdir", "/training_logs", "the folder of training logs"),
  };
  append(flags, run_flags());
  return flags;
}

std::vector<Flag> cpu_and_memory() {
  return {text("cpu", "", "CPUs of each worker, such as 1 or 500m"),
          text("memory", "", "memory of each worker, such as 1Gi")};
}

std::vector<Flag> end_of_life(std::string policy) {
  return {
      choice("clean-task-policy",
             std::move(policy),
             "which pods to delete when the job is finished: Running, None or All",
             {"None", "Running", "All"},
             {"cleanTaskPolicy"}),
      period("running-timeout", "end the job after it has run this long, such as 10m; 0 for never"),
      period("ttl-after-finished", "delete the job this long after it finished; 0 keeps it"),
      text("share-memory", "2Gi", "shared memory of each replica")};
}

Command mpi() {
  Command command;
  command.name = "mpijob";
  command.aliases = {"mpi", "mj"};
  command.summary = "Submit MPIJob as training job";
  command.flags = shared_flags();
  append(command.flags, cpu_and_memory());
  append(command.flags,
         {boolean("gputopology", "enable gputopology scheduling"),
          boolean("mounts-on-launcher", "mount the volumes on the launcher too"),
          choice("clean-task-policy",
                 "All",
                 "which pods to delete when the job is finished: Running, None or All",
                 {"None", "Running", "All"})});
  command.examples =
      "  muster submit mpi --name=medium --gpus=1 --workers=1 --image=IMAGE \"mpirun python train.py\"\n";
  return command;
}

Command horovod() {
  Command command = mpi();
  command.name = "horovodjob";
  command.aliases = {"horovod", "hj"};
  command.summary = "Submit a Horovod job; it runs as an MPIJob";
  append(command.flags,
         {number("ssh-port",
                 "0",
                 "accepted but not needed: ranks are started through the cluster",
                 {"sshPort"})});
  command.examples.clear();
  return command;
}

Command pytorch() {
  Command command;
  command.name = "pytorchjob";
  command.aliases = {"pytorch", "py"};
  command.summary = "Submit PyTorchJob as training job";
  command.details = "--workers counts the master: --workers=3 makes one master and two workers.";
  command.flags = shared_flags();
  append(command.flags, cpu_and_memory());
  append(command.flags, end_of_life("None"));
  append(command.flags,
         {text("nproc-per-node", "", "number of processes per node: auto, cpu, gpu or a number")});
  command.examples =
      "  muster submit pytorch --name=mnist --gpus=1 --workers=2 --image=IMAGE \"python mnist.py\"\n";
  return command;
}

Command tensorflow() {
  Command command;
  command.name = "tfjob";
  command.aliases = {"tf", "tensorflow"};
  command.summary = "Submit TFJob as training job";
  command.flags = shared_flags();
  append(command.flags, end_of_life("Running"));
  append(command.flags,
         {number("ps", "0", "the number of the parameter servers"),
          boolean("chief", "enable chief, which is required for estimator"),
          boolean("evaluator", "enable evaluator, which is optional for estimator"),
          text("worker-image", "", "the docker image for workers", {"workerImage"}),
          text("ps-image", "", "the docker image for parameter servers", {"psImage"}),
          number("ps-gpus", "0", "the GPU count of each parameter server"),
          number("worker-port", "0", "the port of the worker", {"workerPort"}),
          number("ps-port", "0", "the port of the parameter server", {"psPort"}),
          number("chief-port", "0", "the port of the chief", {"chiefPort"}),
          choice("success-policy",
                 "ChiefWorker",
                 "when the job has succeeded: ChiefWorker or AllWorkers",
                 {"ChiefWorker", "AllWorkers"}),
          period("starting-timeout", "give up when not all pods are running after this long"),
          list("role-sequence",
               0,
               "the tfjob role sequence, such as \"Worker,PS,Chief,Evaluator\" or \"w,p,c,e\"")});
  for (const char* role : {"worker", "ps", "chief", "evaluator"}) {
    const std::string name(role);
    append(command.flags,
           {text(name + "-cpu", "", "the cpu resource of " + name),
            text(name + "-cpu-limit", "", "the cpu limit of " + name),
            text(name + "-memory", "", "the memory resource of " + name),
            text(name + "-memory-limit", "", "the memory limit of " + name),
            list(name + "-selector", 0, "nodes for " + name + ", instead of --selector")});
  }
  for (const char* role : {"worker", "ps"}) {
    const std::string name(role);
    append(
        command.flags,
        {choice(
             name + "-affinity-policy",
             "none",
             "place each " + name +
                 " away from the others (spread) or near them (binpack): none, spread or binpack",
             {"none", "spread", "binpack"}),
         choice(name + "-affinity-constraint",
                "preferred",
                "whether that is preferred or required",
                {"preferred", "required"})});
  }
  return command;
}

Command volcano() {
  Command command;
  command.name = "volcanojob";
  command.aliases = {"vj", "volcano"};
  command.summary = "Submit VolcanoJob as training job";
  command.flags = {
      {.name = "name", .help = "assign the job name", .required = true},
      number(
          "min-available", "1", "the minimal available pods to run for this Job", {"minAvailable"}),
      {.name = "queue",
       .value = "default",
       .help = "the queue to schedule the job in",
       .completes = Completes::kQueues},
      text("scheduler-name", "volcano", "the scheduler name", {"schedulerName"}),
      text("task-name", "task", "the task name", {"taskName"}),
      list("task-images",
           0,
           "the docker images of the tasks, separated by commas; one task per image",
           {"taskImages"}),
      number("task-replicas", "1", "the task replicas", {"taskReplicas"}),
      text("task-cpu", "250m", "cpu request of each task replica", {"taskCPU"}),
      text("task-memory", "128Mi", "memory request of each task replica", {"taskMemory"}),
      number("task-gpus", "0", "GPUs of each task replica"),
      number("task-port", "2222", "the task port number", {"taskPort"}),
      list("annotation", 'a', "the annotations"),
      list("label", 'l', "specify the label"),
      {.name = "priority",
       .shorthand = 'p',
       .help = "priority class name",
       .completes = Completes::kPriorities}};
  append(command.flags, run_flags());
  return command;
}

Command pai() {
  Command command;
  command.name = "paijob";
  command.aliases = {"pai", "openpai"};
  command.arguments = "FILE";
  command.summary = "Submit a job of OpenPAI's protocol version 2";
  command.details =
      "The job becomes a Framework, named by a digest of its owner and name. The virtual cluster is HiveD's where the cluster has cells, else the queue of that name.";
  command.examples = "  muster submit pai job.yaml\n";
  command.flags = run_flags();
  command.run = InSession{&run_submit_pai};
  command.completes = Completes::kFiles;
  return command;
}

/// Types that arena knows and nothing here runs: the flags are accepted so that the answer is about
/// the type, and no page lists them.
Command unsupported(std::string name, std::vector<std::string> aliases, std::string summary) {
  Command command;
  command.name = std::move(name);
  command.aliases = std::move(aliases);
  command.summary = std::move(summary);
  command.flags = shared_flags();
  append(command.flags, cpu_and_memory());
  for (const char* flag : {"min-workers",
                           "max-workers",
                           "job-restart-policy",
                           "job-backoff-limit",
                           "worker-restart-policy",
                           "ssh-secret",
                           "main-class",
                           "jar",
                           "spark-version",
                           "replicas",
                           "ray-version",
                           "head-image",
                           "worker-image",
                           "worker-replicas"}) {
    command.flags.push_back(text(flag, "", ""));
  }
  for (Flag& flag : command.flags) flag.hidden = true;
  return command;
}

}  // namespace

std::vector<Command> submit_commands() {
  std::vector<Command> commands{
      mpi(),
      pytorch(),
      tensorflow(),
      horovod(),
      volcano(),
      unsupported("etjob", {"et", "elastic"}, "Submit ETJob (needs its operator)"),
      unsupported("deepspeedjob", {"deepspeed", "dp"}, "Submit DeepSpeedJob (needs its operator)"),
      unsupported("sparkjob", {"spark"}, "Submit SparkJob (needs its operator)"),
      unsupported("rayjob", {"rj", "ray"}, "Submit RayJob (needs its operator)")};
  Command from_pai = pai();
  for (Command& command : commands) {
    command.arguments = command.name == "volcanojob" ? "[flags]" : "[flags] \"command\"";
    command.run = InSession{&run_submit};
  }
  commands.push_back(std::move(from_pai));
  return commands;
}

}  // namespace muster::cli
