#include "link.h"

#include <deque>
#include <optional>

namespace muster::bottle {
namespace {

using client::Answer;
using client::Resource;

Error unavailable(std::string message) {
  Error error;
  error.code = Code::kUnavailable;
  error.message = std::move(message);
  return error;
}

/// One request on its way, known to both sides.
template <typename T>
struct Pending : Place::Waiting {
  std::unique_ptr<Signal> signal;  // the caller's
  std::optional<Result<T>> result;
};

/// One watch, known to both sides.
struct Stream : Place::Waiting {
  std::unique_ptr<Signal> signal;  // the caller's
  std::deque<client::WatchEvent> events;
  std::optional<Result<void>> end;
  std::shared_ptr<client::StopSource> stop = std::make_shared<client::StopSource>();
};

class LinkClient final : public client::Client {
 public:
  LinkClient(SimEnv& env, Place& place, std::string user)
      : env_(env), place_(place), user_(std::move(user)) {}

  Task<Result<json::Value>> get(const Resource& resource,
                                std::string ns,
                                std::string name) override {
    return call<json::Value>(false, [resource, ns, name](client::Client& direct) {
      return direct.get(resource, ns, name);
    });
  }
  Task<Result<client::List>> list(const Resource& resource, client::ListOptions options) override {
    return call<client::List>(false, [resource, options](client::Client& direct) {
      return direct.list(resource, options);
    });
  }
  Task<Result<json::Value>> create(const Resource& resource,
                                   std::string ns,
                                   json::Value object,
                                   Answer answer) override {
    return call<json::Value>(
        true, [=](client::Client& direct) { return direct.create(resource, ns, object, answer); });
  }
  Task<Result<json::Value>> update(const Resource& resource, json::Value object) override {
    return call<json::Value>(
        true, [=](client::Client& direct) { return direct.update(resource, object); });
  }
  Task<Result<json::Value>> update_status(const Resource& resource, json::Value object) override {
    return call<json::Value>(
        true, [=](client::Client& direct) { return direct.update_status(resource, object); });
  }
  Task<Result<json::Value>> patch(const Resource& resource,
                                  std::string ns,
                                  std::string name,
                                  std::string subresource,
                                  client::PatchType type,
                                  json::Value patch,
                                  Answer answer) override {
    return call<json::Value>(true, [=](client::Client& direct) {
      return direct.patch(resource, ns, name, subresource, type, patch, answer);
    });
  }
  Task<Result<void>> remove(const Resource& resource,
                            std::string ns,
                            std::string name,
                            client::DeleteOptions options) override {
    return call<void>(
        true, [=](client::Client& direct) { return direct.remove(resource, ns, name, options); });
  }
  Task<Result<json::Value>> post_subresource(const Resource& resource,
                                             std::string ns,
                                             std::string name,
                                             std::string subresource,
                                             json::Value body,
                                             Answer answer) override {
    return call<json::Value>(true, [=](client::Client& direct) {
      return direct.post_subresource(resource, ns, name, subresource, body, answer);
    });
  }
  void submit(client::Post post, std::function<void(Result<void>)> done) override {
    env_.spawn(send(post.resource,
                    std::move(post.ns),
                    std::move(post.name),
                    std::move(post.subresource),
                    std::move(post.body),
                    std::move(done)));
  }
  Task<Result<json::Value>> raw(std::string method, std::string target, json::Value body) override {
    return call<json::Value>(
        method != "GET", [=](client::Client& direct) { return direct.raw(method, target, body); });
  }
  Task<Result<void>> watch(Resource resource,
                           client::WatchOptions options,
                           std::function<bool(client::WatchEvent)> each) override;

  net::Client& http() override {
    MUSTER_CHECK(false, "nobody speaks HTTP here");
    std::abort();
  }
  [[nodiscard]] bool sends_text() const override { return false; }
  [[nodiscard]] std::string default_namespace() const override { return "default"; }

 private:
  template <typename T>
  using Request = std::function<Task<Result<T>>(client::Client&)>;

  bool meets(std::uint64_t per_mille) {
    return per_mille > 0 && env_.world().random().below(1000) < per_mille;
  }
  Duration way() {
    Random& random = env_.world().random();
    if (meets(place_.faults.late)) {
      ++place_.counts.late;
      return std::chrono::milliseconds(500 + random.below(5000));
    }
    return Duration(50 + static_cast<std::int64_t>(random.below(500)));
  }

  Task<void> send(Resource resource,
                  std::string ns,
                  std::string name,
                  std::string subresource,
                  json::Value body,
                  std::function<void(Result<void>)> done) {
    const auto answer = name.empty()
                            ? co_await create(resource, ns, std::move(body), Answer::kNone)
                            : co_await post_subresource(
                                  resource, ns, name, subresource, std::move(body), Answer::kNone);
    if (answer)
      done({});
    else
      done(fail(answer.error()));
  }

  client::Client& direct(Place::Server& server) const {
    auto& made = server.clients[user_];
    if (!made) made = server.server->make_client(user_);
    return *made;
  }

  /// In the server's process.
  template <typename T>
  static Task<void> serve(std::shared_ptr<Place::Server> server,
                          client::Client& direct,
                          Request<T> request,
                          std::function<void(Result<T>)> answer) {
    auto result = co_await request(direct);
    answer(std::move(result));
    (void)server;
  }

  template <typename T>
  Task<Result<T>> call(bool writes, Request<T> request) {
    ++place_.counts.requests;
    co_await env_.sleep(way());
    const auto server = place_.server();
    if (!server) co_return fail(unavailable("connection refused"));
    if (meets(place_.faults.refused)) {
      ++place_.counts.refused;
      co_return fail(unavailable("the server is busy"));
    }
    const auto pending = std::make_shared<Pending<T>>();
    pending->signal = env_.make_signal();
    SimEnv* caller = &env_;
    const auto finish = [caller, pending](Result<T> result, Duration delay) {
      caller->later(delay, [pending, result = std::move(result)] {
        if (pending->result) return;
        pending->result = result;
        pending->signal->notify();
      });
    };
    pending->break_off = [this, finish] {
      ++place_.counts.broken;
      finish(fail(unavailable("connection lost")), way());
    };
    place_.add(pending);
    const bool lost = writes && meets(place_.faults.lost_answer);
    if (lost) ++place_.counts.lost_answers;
    const auto answer = [finish, lost, delay = way()](Result<T> result) {
      finish(lost ? Result<T>(fail(unavailable("connection lost"))) : std::move(result), delay);
    };
    server->env->spawn(serve<T>(server, direct(*server), request, answer));
    if (writes && meets(place_.faults.doubled)) {
      ++place_.counts.doubled;
      server->env->spawn(serve<T>(server, direct(*server), request, [](Result<T>) {}));
    }
    co_await pending->signal->wait(Duration::zero());
    pending->break_off = nullptr;
    co_return std::move(*pending->result);
  }

  static Task<void> serve_watch(std::shared_ptr<Place::Server> server,
                                client::Client& direct,
                                Resource resource,
                                client::WatchOptions options,
                                std::function<bool(client::WatchEvent)> each,
                                std::function<void(Result<void>)> end) {
    auto result = co_await direct.watch(resource, options, each);
    end(std::move(result));
    (void)server;
  }

  SimEnv& env_;
  Place& place_;
  const std::string user_;
};

Task<Result<void>> LinkClient::watch(Resource resource,
                                     client::WatchOptions options,
                                     std::function<bool(client::WatchEvent)> each) {
  co_await env_.sleep(way());
  const auto server = place_.server();
  if (!server) co_return fail(unavailable("connection refused"));
  const auto stream = std::make_shared<Stream>();
  stream->signal = env_.make_signal();
  SimEnv* caller = &env_;
  const auto end = [caller, stream](Result<void> result) {
    caller->post([stream, result = std::move(result)] {
      if (!stream->end) stream->end = result;
      stream->signal->notify();
    });
  };
  stream->break_off = [this, end] {
    ++place_.counts.broken;
    end(fail(unavailable("connection lost")));
  };
  place_.add(stream);
  const auto stop = options.list.stop;
  if (stop) stop->on_stop = [stream] { stream->signal->notify(); };
  options.list.stop = stream->stop;
  const auto tell = [caller, stream](client::WatchEvent event) {
    caller->post([stream, event = std::move(event)] {
      stream->events.push_back(event);
      stream->signal->notify();
    });
    return !stream->stop->stopped();
  };
  server->env->spawn(serve_watch(server, direct(*server), resource, options, tell, end));
  bool more = true;
  Result<void> result;
  while (more) {
    if (stream->events.empty() && !stream->end && !(stop && stop->stopped()))
      co_await stream->signal->wait(Duration::zero());
    while (more && !stream->events.empty()) {
      const auto event = std::move(stream->events.front());
      stream->events.pop_front();
      more = each(event);
      if (more && meets(place_.faults.cut)) {
        ++place_.counts.cut;
        more = false;
      }
    }
    if (more && stop && stop->stopped()) more = false;
    if (more && stream->events.empty() && stream->end) {
      result = *stream->end;
      more = false;
    }
  }
  if (stop) stop->on_stop = nullptr;
  stream->break_off = nullptr;
  // The server hears of it in its own process, if it still lives.
  server->env->post([stream] { stream->stop->stop(); });
  co_return result;
}

}  // namespace

void Place::add(const std::shared_ptr<Waiting>& waiting) {
  waiting_.push_back(waiting);
  if (waiting_.size() > 1000) waiting_.remove_if([](const auto& each) { return each.expired(); });
}

void Place::set(SimEnv& env, apiserver::Server& server) {
  server_ = std::make_shared<Server>();
  server_->env = &env;
  server_->server = &server;
}

void Place::reset() {
  if (!server_) return;
  // Kept for ever with what its dead process holds, as nothing of that runs again.
  static std::vector<std::shared_ptr<Server>> graves;
  graves.push_back(std::move(server_));
  server_.reset();
  const auto waiting = std::exchange(waiting_, {});
  for (const auto& each : waiting) {
    const auto still = each.lock();
    if (still && still->break_off) still->break_off();
  }
}

std::unique_ptr<client::Client> make_link(SimEnv& env, Place& place, std::string user) {
  return std::make_unique<LinkClient>(env, place, std::move(user));
}

}  // namespace muster::bottle
