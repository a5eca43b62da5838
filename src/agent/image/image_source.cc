#include "agent/image/image_source.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "agent/fd.h"
#include "agent/image/socket_watch.h"
#include "base/log.h"
#include "base/strings.h"

extern char** environ;

namespace muster::agent::image {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kUnix = "unix://";
constexpr Duration kAnswerPatience = std::chrono::seconds(30);
constexpr Duration kLook = std::chrono::seconds(30);
constexpr std::size_t kNodeImagesMax = 50;

int used_percent(const std::string& path) {
  struct statvfs info{};
  if (statvfs(path.c_str(), &info) != 0 || info.f_blocks == 0) return 0;
  return static_cast<int>(100 - info.f_bavail * 100 / info.f_blocks);
}

/// Runs a program to its end; what it said and whether all was well.
std::pair<bool, std::string> run_program(const std::vector<std::string>& words) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {false, "no pipe"};
  Fd reader(ends[0]), writer(ends[1]);
  std::vector<char*> argv;
  for (const auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), 2);
  pid_t pid = -1;
  const int problem = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  writer.reset();
  if (problem != 0) return {false, fmt::format("{}: {}", words[0], std::strerror(problem))};
  constexpr std::size_t kSaidMax = 64 * 1024;
  std::string said;
  char buffer[4096];
  for (ssize_t got = 0; (got = read(reader.get(), buffer, sizeof buffer)) > 0;) {
    if (said.size() < kSaidMax) said.append(buffer, static_cast<std::size_t>(got));
  }
  int status = 1;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return {WIFEXITED(status) && WEXITSTATUS(status) == 0, std::string(trim(said))};
}

bool is_used(const StoredImage& image, const std::set<std::string>& in_use) {
  const auto used = [&in_use](const std::string& name) { return in_use.contains(name); };
  return used(image.id) || std::any_of(image.repo_tags.begin(), image.repo_tags.end(), used) ||
         std::any_of(image.repo_digests.begin(), image.repo_digests.end(), used);
}

PullOptions pull_options(const SourceOptions& options) {
  PullOptions out;
  out.directory = options.directory;
  out.parallel_max = options.parallel_pulls_max;
  out.registries = options.registries;
  return out;
}

}  // namespace

Result<void> check_source(const std::string& source) {
  if (source.empty() || source == "none" || source == "containerd" ||
      source.starts_with("unix:///"))
    return {};
  return fail(Code::kBadRequest,
              fmt::format("image source \"{}\": wanted none, containerd, or a socket such as "
                          "unix:///run/containerd/containerd.sock",
                          source));
}

Result<std::string> import_archive(const std::string& socket, const std::string& path) {
  const auto [well, said] = run_program(
      {"ctr", "--address", socket, "--namespace", kContainerdNamespace, "images", "import", path});
  if (!well) return fail(Code::kInvalid, fmt::format("import \"{}\": {}", path, said));
  return said;
}

std::vector<StoredImage> unused_images(std::vector<Candidate> images,
                                       const std::set<std::string>& in_use,
                                       Time now,
                                       Duration age) {
  std::stable_sort(images.begin(), images.end(), [](const Candidate& a, const Candidate& b) {
    return a.last_used < b.last_used;
  });
  std::vector<StoredImage> out;
  for (auto& one : images) {
    if (!one.image.pinned && !is_used(one.image, in_use) && now - one.last_used >= age)
      out.push_back(std::move(one.image));
  }
  return out;
}

json::Array list_for_node(std::vector<StoredImage> images) {
  std::sort(images.begin(), images.end(), [](const StoredImage& a, const StoredImage& b) {
    return a.size_bytes != b.size_bytes ? a.size_bytes > b.size_bytes : a.id < b.id;
  });
  if (images.size() > kNodeImagesMax) images.resize(kNodeImagesMax);
  json::Array out;
  for (const auto& image : images) {
    json::Array names;
    for (const auto* list : {&image.repo_digests, &image.repo_tags}) {
      for (const auto& name : *list) names.emplace_back(name);
    }
    out.push_back(json::Object{{"names", std::move(names)}, {"sizeBytes", image.size_bytes}});
  }
  return out;
}

ImageSource::ImageSource(net::Loop& loop, SourceOptions options)
    : loop_(loop),
      options_(std::move(options)),
      containerd_(loop, options_.directory),
      store_(loop, socket()),
      pulls_(loop, store_, pull_options(options_)),
      wake_(loop.make_signal()) {
  pulls_.on_change = [this] {
    loop_.spawn(list(alive_));
    wake_->notify();  // the disk may be full now
  };
}

std::string ImageSource::socket() const {
  return own() ? containerd_.socket() : options_.source.substr(kUnix.size());
}

Task<Result<void>> ImageSource::start() {
  std::error_code error;
  fs::create_directories(options_.directory, error);
  if (own()) {
    const auto started = containerd_.start(options_.registries, options_.pods);
    if (!started) co_return started;
  } else {
    const auto version = co_await store_.version();
    if (!version)
      co_return fail(
          Code::kUnavailable,
          fmt::format("--image-source {}: {}", options_.source, version.error().message));
    if (!options_.registries.empty())
      log::warn("agent", "endpoints of registries are those of the containerd at {}", socket());
  }
  loop_.spawn(begin(alive_));
  co_return Result<void>();
}

Task<void> ImageSource::begin(std::shared_ptr<bool> alive) {
  const bool answers = co_await wait_for_answer(alive);
  if (!*alive) co_return;
  if (answers) co_await import_archives();
  if (!*alive) co_return;
  ready_ = true;
  for (auto* signal : waiting_) signal->notify();
  loop_.spawn(look_again_and_again(alive));
}

Task<bool> ImageSource::wait_for_answer(std::shared_ptr<bool> alive) {
  const auto deadline = loop_.monotonic() + kAnswerPatience;
  while (*alive) {
    SocketWatch appears(loop_, socket());  // before the question: none is missed
    const auto version = co_await store_.version();
    if (!*alive) break;
    if (version) {
      log::info("agent", "images come from {} at {}", *version, socket());
      co_return true;
    }
    if (loop_.monotonic() > deadline) {
      log::warn("agent", "containerd does not answer: {}", version.error().message);
      co_return false;
    }
    co_await appears.wait();
  }
  co_return false;
}

Task<void> ImageSource::wait_ready() {
  if (ready_) co_return;
  const auto signal = loop_.make_signal();
  waiting_.push_back(signal.get());
  while (!ready_) co_await signal->wait(Duration::zero());
  std::erase(waiting_, signal.get());
}

Task<void> ImageSource::import_archives() {
  if (options_.archives.empty()) co_return;
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator item(options_.archives, error), end; !error && item != end;
       item.increment(error)) {
    if (item->path().extension() == ".tar") found.push_back(item->path().string());
  }
  std::sort(found.begin(), found.end());
  for (const auto& path : found) {
    Result<std::string> imported;
    const auto work = [&imported, &path, where = socket()] {
      imported = import_archive(where, path);
    };
    co_await loop_.run_on_worker(work);
    if (imported)
      log::info("agent", "imported {}: {}", path, *imported);
    else
      log::warn("agent", "{}", imported.error().message);
  }
}

Task<void> ImageSource::look_again_and_again(std::shared_ptr<bool> alive) {
  while (*alive) {
    co_await list(alive);
    if (*alive && own()) co_await collect(alive);
    if (!*alive) co_return;
    co_await wake_->wait(kLook);
  }
}

Task<void> ImageSource::list(std::shared_ptr<bool> alive) {
  list_again_ = true;
  if (std::exchange(listing_, true)) co_return;
  while (*alive && std::exchange(list_again_, false)) {
    auto images = co_await store_.list();
    if (!*alive) co_return;
    if (!images) break;
    auto now = list_for_node(std::move(*images));
    if (json::equal(json::Value(now), json::Value(node_images_))) continue;
    node_images_ = std::move(now);
    if (options_.on_change) options_.on_change();
  }
  listing_ = false;
}

Task<void> ImageSource::collect(std::shared_ptr<bool> alive) {
  const auto place = co_await store_.filesystem();
  if (!*alive || !place) co_return;
  const auto& limits = options_.collection;
  if (used_percent(*place) <= limits.above_percent) co_return;
  const auto images = co_await store_.list();
  if (!*alive || !images) co_return;
  std::vector<Candidate> candidates;
  for (const auto& image : *images) candidates.push_back({image, pulls_.last_used(image.id)});
  for (auto& image :
       unused_images(std::move(candidates), options_.in_use(), loop_.now(), limits.age)) {
    if (used_percent(*place) <= limits.until_percent) break;
    // Somebody may have begun to use it meanwhile.
    if (is_used(image, options_.in_use()) || loop_.now() - pulls_.last_used(image.id) < limits.age)
      continue;
    const auto id = image.id;
    const auto name = image.repo_tags.empty() ? id : image.repo_tags.front();
    const auto removed = co_await store_.remove(std::move(image));
    if (!*alive) co_return;
    if (removed) {
      pulls_.forget(id);
      log::info("agent", "removed image {}: it is unused, and the disk is full", name);
    } else {
      log::warn("agent", "remove image {}: {}", name, removed.error().message);
    }
  }
  co_await list(alive);
}

Task<void> ImageSource::stop(bool clean) {
  *alive_ = false;
  ready_ = true;
  for (auto* signal : waiting_) signal->notify();
  wake_->notify();
  if (own() && clean) co_await containerd_.end();
}

}  // namespace muster::agent::image
