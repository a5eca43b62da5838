/// One pod in the hands of its supervisor: from its configuration to the end of its containers.
///
/// The code is in three files by subject: supervisor.cc (the pod as a whole, and what the agent
/// asks), supervisor_containers.cc (starting, ending and reporting a container),
/// supervisor_streams.cc (exec, attach, output, ports).
/// One piece: it is a process of its own with one loop, and the pod is all it has.
#pragma once

#include <sys/types.h>

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process/child.h"
#include "agent/process/container_root.h"
#include "agent/process/log_writer.h"
#include "agent/process/messages.h"
#include "agent/process/namespaces.h"
#include "agent/process/wire.h"

namespace muster::agent::process {

struct Pipe {
  Fd read, write;
};
Pipe make_pipe();
void set_nonblocking(int fd);
/// Until end of stream.
std::string read_all(int fd);

struct Terminal {
  Fd master, slave;
};

/// Both ends of what a process reads and writes: pipes, or a terminal.
struct Streams {
  Pipe in, out, err;
  Terminal terminal;
  ChildStreams child;  // the process's ends
};
struct StreamsWanted {
  bool tty = false, in = false, out = false, err = false;
};
Result<Streams> open_streams(const StreamsWanted& wanted);
/// What the process holds is its own business from now on.
void close_child_ends(Streams& streams);

/// `cgroup`: where the child starts; -1: where we are.
pid_t clone_process(std::uint64_t flags, int cgroup = -1);

/// One attached reader of one stream.
struct Sink {
  Fd fd;
  std::string pending;
};

struct Container {
  ContainerConfig config;
  ContainerStatus status;
  pid_t pid = -1;  // of the container's first process; -1 once collected
  Fd pid_namespace, mount_namespace;
  std::unique_ptr<LogWriter> log;
  Fd output[2];  // what is read: stdout and stderr, or the terminal's master in [0]
  Fd input;      // stdin's write end
  std::list<Sink> sinks[2];
  std::int64_t kill_at_ms = 0;  // SIGKILL is due; 0: not
  bool exited = false;          // collected; reported once both outputs are drained
  int wait_status = 0;
};

struct Exec {
  std::int64_t number = 0;
  int connection = -1;
};

/// Where a container's first process starts.
struct Placement {
  bool own_processes = false;  // a pid namespace of its own
  Owner owner;
  RootWish root;
};

class Supervisor {
 public:
  Supervisor(ShimConfig config, Namespaces& namespaces)
      : config_(std::move(config)), namespaces_(namespaces) {}

  struct End {
    int exit_code = 0;
    Fd control;             // set: another pod may follow; it comes from here
    Namespaces::Next next;  // at this address
  };
  /// Until the agent says that it is over.
  End run(Fd control);
  [[nodiscard]] const ShimConfig& config() const { return config_; }

 private:
  Result<void> prepare();
  void step();
  int timeout_ms() const;
  void accept_connection();
  void reply(int connection, const json::Value& body, const std::vector<int>& fds = {});
  void broadcast(const json::Value& body);
  bool serve_connection(int connection);
  Result<json::Value> perform(const std::string& op,
                              const json::Value& body,
                              int connection,
                              std::vector<Fd>& fds);
  Result<json::Value> shutdown(const json::Value& body, int connection);
  bool leave(int connection);
  void keep_folder();
  Result<json::Value> change_limits(Container& container, Limits limits);

  /// Users of the pod's own, unless it wants the machine's.
  [[nodiscard]] Owner pod_owner() const;
  /// The same for a container, which may ask for what only the machine's root has.
  [[nodiscard]] Owner owner_of(const ContainerConfig& container) const;

  Result<void> start_shared_init();
  Result<json::Value> start(ContainerConfig config);
  pid_t launch_container(Container& container, const ChildStreams& streams, const Pipe& failure);
  Fd take_root(const ContainerConfig& wanted, const Owner& owner);
  void move_folder_in();
  [[noreturn]] void become_container(const ContainerConfig& wanted,
                                     const ChildStreams& streams,
                                     const Pipe& failure,
                                     Placement placement,
                                     Result<std::vector<Fd>> doors);
  Result<json::Value> stop(Container& container, std::int64_t grace_ms);
  void kill_overdue();
  void kill_container(Container& container);
  void collect_children();
  void collected(pid_t pid, int status);
  void container_exited(Container& container, int status);
  void finish(Container& container);
  bool has_own_processes(const Container& container) const;
  std::string group_of(const std::string& container) const;
  void save_state() const;
  json::Value snapshot() const;

  Result<json::Value> exec(Container& container,
                           const json::Value& body,
                           int connection,
                           std::vector<Fd>& fds);
  [[noreturn]] void exec_child(const Container& container,
                               const std::vector<std::string>& command,
                               const ChildStreams& streams,
                               const Pipe& failure);
  Result<json::Value> attach(Container& container, const json::Value& body, std::vector<Fd>& fds);
  Result<json::Value> connect_port(int port, std::vector<Fd>& fds);
  void serve_output(Container& container, const std::map<int, short>& ready);
  void read_output(Container& container, int stream);

  ShimConfig config_;
  Namespaces& namespaces_;
  std::vector<Fd> connections_;
  std::set<int> strangers_;  // connections that have not said the key yet
  Fd listener_, signals_, own_pid_namespace_, shared_pid_namespace_;
  std::map<std::string, Container> containers_;  // by id; one attempt of each name
  std::map<pid_t, Exec> execs_;
  /// A folder that was made ahead and has a container already, but is not in its place yet.
  struct Moving {
    std::string folder;
    ContainerConfig config;
  };
  std::optional<Moving> moving_;
  Fd spent_;               // mounts that nobody needs; the kernel takes its time to remove them
  bool powerful_ = false;  // a container could have changed the network
  /// Files on a volume may belong to the numbers that its users have here.
  bool owns_outside_ = false;
  bool unfiltered_ = false;    // one could have made system calls that others may not
  bool shares_files_ = false;  // a container had files together with other pods
  bool unsaved_ = false;       // the state of containers has changed since it was written
  bool done_ = false;
  End end_;
};

}  // namespace muster::agent::process
