#include "agent/process/supervisor_link.h"

namespace muster::agent::process {
namespace {

Error gone_error() {
  Error error;
  error.code = Code::kUnavailable;
  error.message = "the pod's supervisor is gone";
  return error;
}

}  // namespace

SupervisorLink::SupervisorLink(net::Loop& loop, ShimConfig wanted, Listener listener)
    : config(std::move(wanted)),
      changed(loop.make_signal()),
      loop_(loop),
      listener_(std::move(listener)) {}

void SupervisorLink::listen(std::unique_ptr<net::Descriptor> socket) {
  socket_ = std::move(socket);
  loop_.spawn(read());
}

void SupervisorLink::close() {
  if (socket_) socket_->close();
}

Task<Result<SupervisorLink::Reply>> SupervisorLink::call(std::string op, json::Object body) {
  const auto self = shared_from_this();
  if (!alive) co_return fail(gone_error());
  const auto number = ++next_request_;
  body["op"] = op;
  body["request"] = number;
  auto pending = std::make_shared<Pending>();
  pending->answered = loop_.make_signal();
  pending_[number] = pending;
  const json::Value message = std::move(body);
  const auto sent = send_message(socket_->fd(), message, {}, config.sandbox.run_directory);
  if (!sent) {
    pending_.erase(number);
    co_return fail(sent.error());
  }
  while (!pending->result) co_await pending->answered->wait(Duration::zero());
  co_return std::move(*pending->result);
}

void SupervisorLink::tell(json::Object body) {
  body["request"] = 0;
  if (alive)
    (void)send_message(
        socket_->fd(), json::Value(std::move(body)), {}, config.sandbox.run_directory);
}

void SupervisorLink::take_snapshot(const json::Value& body) {
  pid = static_cast<int>(json::int_at(body, "pid"));
  for (const auto& item : json::array_at(body, "containers")) {
    auto status = container_status_from_json(item);
    containers[status.id] = status;
  }
}

std::int64_t SupervisorLink::add_exec(const std::shared_ptr<ExecState>& state) {
  const auto number = ++next_request_;
  execs_[number] = state;
  return number;
}

void SupervisorLink::add_attached(const std::string& container_id,
                                  const std::shared_ptr<ExecState>& state) {
  attached_[container_id].push_back(state);
}

Task<void> SupervisorLink::read() {
  const auto self = shared_from_this();
  for (;;) {
    Message message;
    const auto received = receive_message(socket_->fd(), message);
    if (received == Received::kClosed) break;
    if (received == Received::kMessage) {
      handle(message);
      if (rests) co_return;
      continue;
    }
    const bool open = co_await socket_->readable();
    if (!open) break;
  }
  end();
  listener_.on_gone(*this);
}

void SupervisorLink::handle(Message& message) {
  const auto event = json::string_at(message.body, "ev");
  if (event == "reply") {
    answer(message);
  } else if (event == "ready") {
    ready = true;
    pid = static_cast<int>(json::int_at(message.body, "pid"));
    changed->notify();
  } else if (event == "failed") {
    failure = json::text_at(message.body, "message");
    changed->notify();
  } else if (event == "exited") {
    container_exited(container_status_from_json(json::at(message.body, "container")));
  } else if (event == "exec-exit") {
    const auto found = execs_.find(json::int_at(message.body, "exec"));
    if (found == execs_.end()) return;
    found->second->end(static_cast<int>(json::int_at(message.body, "code")));
    execs_.erase(found);
  }
}

void SupervisorLink::answer(Message& message) {
  const auto found = pending_.find(json::int_at(message.body, "request"));
  if (found == pending_.end()) return;
  const auto pending = found->second;
  pending_.erase(found);
  if (const auto& problem = json::at(message.body, "error"); !problem.is_null()) {
    Error error;
    error.code = json::bool_at(message.body, "notFound") ? Code::kNotFound : Code::kInternal;
    error.message = json::text(problem);
    pending->result = Result<Reply>(tl::unexpected<Error>(std::move(error)));
  } else {
    const auto& value = json::at(message.body, "value");
    if (json::bool_at(value, "rests")) {
      rests = std::move(socket_);
      end();
    }
    pending->result = Result<Reply>(Reply{value, std::move(message.fds)});
  }
  pending->answered->notify();
}

void SupervisorLink::container_exited(const ContainerStatus& status) {
  containers[status.id] = status;
  for (const auto& waiting : attached_[status.id]) waiting->end(status.exit_code);
  attached_.erase(status.id);
  listener_.on_exit(*this, status);
}

void SupervisorLink::end() {
  alive = false;
  for (auto& [number, pending] : pending_) {
    pending->result = Result<Reply>(tl::unexpected<Error>(gone_error()));
    pending->answered->notify();
  }
  pending_.clear();
  for (auto& [number, exec] : execs_) exec->lose();
  for (auto& [id, waiting] : attached_) {
    for (const auto& one : waiting) one->lose();
  }
  changed->notify();
}

}  // namespace muster::agent::process
