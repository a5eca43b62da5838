#include "agent/streams/log_server.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <filesystem>

#include "agent/files.h"
#include "agent/pod/container_spec.h"
#include "agent/process/messages.h"
#include "agent/streams/log_files.h"
#include "agent/streams/log_reader.h"
#include "agent/streams/streams.h"
#include "base/strings.h"
#include "net/http/query.h"
#include "net/loop/descriptor.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

/// The highest attempt that is known or has a log file; -1: none. One that wrote nothing has none.
int last_attempt(const std::string& pod_directory,
                 const std::string& container,
                 const ContainerRecord* record) {
  int last = record != nullptr && record->current ? record->current->attempt : -1;
  std::error_code error;
  const auto start = container + "_";  // no container's name has one of these
  for (fs::directory_iterator item(pod_directory, error), end; !error && item != end;
       item.increment(error)) {
    const auto name = item->path().filename().string();
    if (!name.starts_with(start) || !name.ends_with(".log")) continue;
    const auto number = name.substr(start.size(), name.size() - start.size() - 4);
    last = std::max(last, static_cast<int>(parse_int(number).value_or(-1)));
  }
  return last;
}

std::string container_of(const json::Value& pod, const net::Target& target) {
  const auto name = std::string(target.get("container"));
  if (!name.empty()) return name;
  const auto& containers = json::array_at(pod, "spec", "containers");
  return containers.empty() ? "" : json::text_at(containers.front(), "name");
}

LogOptions log_options(const net::Target& target, Time now) {
  LogOptions options;
  options.timestamps = net::on(target, "timestamps");
  if (const auto lines = parse_int(target.get("tailLines")); lines) options.tail_lines = *lines;
  if (const auto bytes = parse_int(target.get("limitBytes")); bytes) options.limit_bytes = *bytes;
  if (const auto span = parse_int(target.get("sinceSeconds")); span)
    options.since = now - std::chrono::seconds(*span);
  if (const auto time = parse_time(target.get("sinceTime")); time) options.since = *time;
  options.stream = std::string(target.get("stream"));
  return options;
}

/// Readable when a file in it grows, is touched, or is rotated away.
std::shared_ptr<net::Descriptor> watch_directory(net::Loop& loop, const std::string& path) {
  const int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (fd < 0) return nullptr;
  inotify_add_watch(fd, path.c_str(), IN_MODIFY | IN_ATTRIB | IN_CREATE);
  return net::make_descriptor(loop, fd);
}

void drain(int fd) {
  char buffer[4096];
  while (read(fd, buffer, sizeof buffer) > 0) {
  }
}

/// The file where the last `tail_lines` lines begin, at that place; all lines if negative.
process::Fd open_log(const std::string& path, std::int64_t tail_lines) {
  const auto files = log_files(path);
  process::Fd file;
  for (auto name = files.rbegin(); name != files.rend(); ++name) {
    process::Fd older(open(name->c_str(), O_RDONLY | O_CLOEXEC));
    if (!older) continue;
    file = std::move(older);
    if (tail_lines < 0) continue;
    const auto offset = tail_offset(file.get(), tail_lines);
    lseek(file.get(), offset, SEEK_SET);
    if (offset > 0 || tail_lines == 0) break;
    tail_lines -= count_lines(file.get());
    lseek(file.get(), 0, SEEK_SET);
    if (tail_lines <= 0) break;
  }
  return file;
}

/// One who follows needs a file to watch, though nothing was written yet.
void make_log(const std::string& path) {
  if (make_directory(path.substr(0, path.rfind('/'))))
    const process::Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640));
}

/// Still running as far as the agent knows?
bool runs(const std::shared_ptr<PodWorker>& worker, const std::string& container, int attempt) {
  if (!worker) return false;
  const auto* record = worker->find_container(container);
  return record != nullptr && record->running() && record->current->attempt == attempt;
}

}  // namespace

Task<void> serve_log(Context& context,
                     std::shared_ptr<PodWorker> worker,
                     json::Value pod,
                     net::Target target,
                     net::ResponseWriter& writer) {
  const auto container = container_of(pod, target);
  const auto directory = fmt::format("{}/pods/{}", context.directory, kube::uid_of(pod));
  const auto name = std::string(kube::name_of(pod));
  const auto* known = worker ? worker->find_container(container) : nullptr;
  int attempt = last_attempt(directory, container, known);
  if (net::on(target, "previous")) --attempt;
  if (attempt < 0) {
    Error error;
    error.code = Code::kBadRequest;
    const auto why = known != nullptr && !known->waiting_reason.empty()   ? known->waiting_reason
                     : initialized(worker ? worker->state() : PodState{}) ? "ContainerCreating"
                                                                          : "PodInitializing";
    error.message =
        net::on(target, "previous")
            ? fmt::format(
                  "previous terminated container \"{}\" in pod \"{}\" not found", container, name)
            : fmt::format(
                  "container \"{}\" in pod \"{}\" is waiting to start: {}", container, name, why);
    co_await send_error(writer, std::move(error));
    co_return;
  }
  const auto path = log_path(directory, container, attempt);
  const auto options = log_options(target, context.loop.now());
  const bool follow = net::on(target, "follow");
  if (follow && runs(worker, container, attempt)) make_log(path);
  process::Fd file = open_log(path, options.tail_lines);

  net::Response head;
  head.headers.set("Content-Type", "text/plain");
  const auto began = co_await writer.start(std::move(head));
  if (!began) co_return;
  const auto watch =
      follow ? watch_directory(*context.sockets, fs::path(path).parent_path().string()) : nullptr;
  if (watch) writer.on_close([watch] { watch->close(); });
  LogDecoder decoder(options);
  std::int64_t budget = options.limit_bytes;
  std::string block(64 * 1024, '\0');
  bool last_round = false;
  while (!writer.closed() && budget != 0) {
    if (watch) drain(watch->fd());
    const bool running = watch && runs(worker, container, attempt);
    for (ssize_t got; (got = read(file.get(), block.data(), block.size())) > 0 && budget != 0;) {
      auto text = std::make_shared<std::string>(
          decoder.feed(std::string_view(block).substr(0, static_cast<std::size_t>(got))));
      if (budget > 0 && static_cast<std::int64_t>(text->size()) > budget)
        text->resize(static_cast<std::size_t>(budget));
      if (budget > 0) budget -= static_cast<std::int64_t>(text->size());
      if (text->empty()) continue;
      const auto written = co_await writer.write(std::shared_ptr<const std::string>(text));
      if (!written) co_return;
    }
    // Nothing more is written to a file once the next one was begun.
    if (const auto next = file ? next_log_file(path, file.get()) : ""; !next.empty()) {
      const auto rest = lseek(file.get(), 0, SEEK_CUR);
      if (lseek(file.get(), 0, SEEK_END) == rest)
        file.reset(open(next.c_str(), O_RDONLY | O_CLOEXEC));
      else
        lseek(file.get(), rest, SEEK_SET);
      continue;
    }
    if (!running) {
      // Whatever the container wrote last was in the file before its end was known.
      if (last_round || !follow) break;
      last_round = true;
      continue;
    }
    // The worker touches the file when it learns that the container has ended.
    const bool open_still = co_await watch->readable();
    if (!open_still) break;
  }
  (void)co_await writer.finish();
}

}  // namespace muster::agent
