/// The agent's end of one pod's supervisor: requests and their answers, what it says by itself, and
/// what is known of the pod from that. On the loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/process/messages.h"
#include "agent/process/session.h"
#include "agent/process/wire.h"
#include "net/loop/descriptor.h"
#include "net/loop/loop.h"

namespace muster::agent::process {

class SupervisorLink : public std::enable_shared_from_this<SupervisorLink> {
 public:
  /// `on_exit` for each container that ends, `on_gone` when the supervisor is lost with all of
  /// them.
  struct Listener {
    std::function<void(const SupervisorLink&, const ContainerStatus&)> on_exit;
    std::function<void(const SupervisorLink&)> on_gone;
  };
  SupervisorLink(net::Loop& loop, ShimConfig config, Listener listener);

  struct Reply {
    json::Value value;
    std::vector<Fd> fds;
  };
  /// Hears what comes from now on.
  void listen(std::unique_ptr<net::Descriptor> socket);
  Task<Result<Reply>> call(std::string op, json::Object body);
  /// Not answered.
  void tell(json::Object body);
  void close();
  /// What the supervisor wrote or says of itself and its containers.
  void take_snapshot(const json::Value& body);

  /// An exec is named by its number, for the one who tells how it ended.
  std::int64_t add_exec(const std::shared_ptr<ExecState>& state);
  void drop_exec(std::int64_t number) { execs_.erase(number); }
  void add_attached(const std::string& container_id, const std::shared_ptr<ExecState>& state);

  ShimConfig config;
  int pid = 0;
  bool alive = true;  // and the pod's
  bool ready = false;
  std::string failure;              // why it could not start
  std::unique_ptr<Signal> changed;  // ready, failed or gone
  std::map<std::string, ContainerStatus> containers;
  /// The connection to a supervisor that is done with the pod and there for another.
  std::unique_ptr<net::Descriptor> rests;
  bool rested = false;  // and was handed on

 private:
  struct Pending {
    std::unique_ptr<Signal> answered;
    std::optional<Result<Reply>> result;
  };
  Task<void> read();
  void handle(Message& message);
  void answer(Message& message);
  void container_exited(const ContainerStatus& status);
  /// There will be no more answers.
  void end();

  net::Loop& loop_;
  Listener listener_;
  std::unique_ptr<net::Descriptor> socket_;
  std::int64_t next_request_ = 0;
  std::map<std::int64_t, std::shared_ptr<Pending>> pending_;
  std::map<std::int64_t, std::shared_ptr<ExecState>> execs_;
  std::map<std::string, std::vector<std::shared_ptr<ExecState>>> attached_;  // by container id
};

}  // namespace muster::agent::process
