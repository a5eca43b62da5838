#include "portal/api/simulations.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/files.h"
#include "base/strings.h"

extern char** environ;  // NOLINT: POSIX's

namespace muster::portal {
namespace {

namespace fs = std::filesystem;

/// What one simulation may take.
constexpr rlim_t kCpuSeconds = 300, kMemoryBytes = rlim_t{4} << 30U;
constexpr int kNice = 10;

bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= 40 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || c == '-';
  });
}
/// "64x8".
bool is_size(std::string_view text) {
  return !text.empty() && text.size() <= 20 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || c == 'x';
  });
}
/// "12h", "1.5": a number with a unit or without.
bool is_amount(std::string_view text) {
  return text.size() <= 20 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '.';
         });
}

tl::unexpected<Error> wrong(std::string message) {
  return fail(Code::kBadRequest, std::move(message));
}

std::string last_line(const std::string& text) {
  const auto lines = split_nonempty(text, '\n');
  return lines.empty() ? "" : lines.back().substr(0, 500);
}

}  // namespace

std::string_view sim_state_name(Simulations::Run::State state) {
  using State = Simulations::Run::State;
  switch (state) {
    case State::kWaiting:
      return "waiting";
    case State::kRunning:
      return "running";
    case State::kDone:
      return "done";
    case State::kFailed:
      return "failed";
  }
  return "";
}

Result<SimAsk> read_sim_ask(const json::Value& value) {
  SimAsk ask;
  if (!value.is_object()) return wrong("wanted {trace, nodes, policies}");
  ask.name = json::text_at(value, "name").substr(0, 100);
  ask.trace = json::text_at(value, "trace");
  ask.nodes = std::string(trim(json::text_at(value, "nodes")));
  ask.hived = json::text_at(value, "hived");
  ask.policy_file = json::text_at(value, "policyFile");
  ask.from = json::text_at(value, "from");
  ask.to = json::text_at(value, "to");
  ask.speed = json::text_at(value, "speed");
  ask.limit = json::int_at(value, "limit");
  ask.tenants = json::bool_at(value, "tenants");
  ask.resume = json::bool_at(value, "resume");
  if (ask.trace.empty()) return wrong("trace: wanted the text of a CSV with jobs");
  if (ask.nodes.empty() == ask.hived.empty())
    return wrong("wanted one of nodes (\"64x8\" or a CSV) and hived (a configuration of cells)");
  for (const json::Value& one : json::array_at(value, "policies")) {
    if (!one.is_string() || !is_word(json::as_string(one)))
      return wrong("policies: wanted names such as backfill; a file goes into policyFile");
    ask.policies.push_back(json::text(one));
  }
  for (const std::string* one : {&ask.from, &ask.to, &ask.speed}) {
    if (!is_amount(*one)) return wrong(fmt::format("{}: wanted a number", one->substr(0, 40)));
  }
  if (ask.limit < 0) return wrong("limit: wanted a positive number");
  return ask;
}

Result<std::string> Simulations::start(const std::string& user, const SimAsk& ask) {
  load();
  const auto mine = std::count_if(runs_.begin(), runs_.end(), [&](const auto& one) {
    return one.second.user == user && one.second.state <= Run::State::kRunning;
  });
  if (mine >= static_cast<std::ptrdiff_t>(kWaiting))
    return fail(Code::kTooManyRequests,
                fmt::format("{} of your simulations are not finished; wait for one of them", mine));
  // The oldest that is over makes room.
  while (runs_.size() >= kKept) {
    const auto old = std::find_if(runs_.begin(), runs_.end(), [](const auto& one) {
      return one.second.state > Run::State::kRunning;
    });
    if (old == runs_.end())
      return fail(Code::kTooManyRequests, "too many simulations wait; try again later");
    remove(std::string(old->first));
  }
  Run run;
  run.began_ms = loop_.now().us / 1000;
  run.id = fmt::format("{}-{:08x}", run.began_ms, loop_.random() & 0xffffffffU);
  run.name = ask.name.empty() ? "simulation" : ask.name;
  run.user = user;
  std::error_code error;
  fs::create_directories(place(run.id), error);
  if (error) return fail(Code::kInternal, fmt::format("{}: {}", folder_, error.message()));
  fs::permissions(folder_, fs::perms::owner_all, error);
  run.words = {"muster", "sim", "--trace", "jobs.csv", "--json", "out.json", "--html", "out.html"};
  Result<void> written = write_private(place(run.id) + "/jobs.csv", ask.trace);
  const auto with_file = [&](const char* flag, const char* file, const std::string& text) {
    if (written) written = write_private(place(run.id) + "/" + file, text);
    run.words.insert(run.words.end(), {flag, file});
  };
  if (!ask.hived.empty())
    with_file("--hived-config", "hived.yaml", ask.hived);
  else if (is_size(ask.nodes))
    run.words.insert(run.words.end(), {"--nodes", ask.nodes});
  else
    with_file("--nodes", "nodes.csv", ask.nodes);
  std::vector<std::string> policies = ask.policies;
  if (!ask.policy_file.empty()) {
    if (written) written = write_private(place(run.id) + "/policies.yaml", ask.policy_file);
    policies.emplace_back("policies.yaml");
  }
  if (!policies.empty()) run.words.insert(run.words.end(), {"--policy", join(policies, ",")});
  for (const auto& [flag, text] : {std::pair("--from", &ask.from),
                                   std::pair("--to", &ask.to),
                                   std::pair("--speed", &ask.speed)}) {
    if (!text->empty()) run.words.insert(run.words.end(), {flag, *text});
  }
  if (ask.limit > 0) run.words.insert(run.words.end(), {"--limit", std::to_string(ask.limit)});
  if (ask.tenants) run.words.emplace_back("--tenants");
  if (ask.resume) run.words.emplace_back("--resume");
  if (!written) {
    fs::remove_all(place(run.id), error);
    return fail(written.error());
  }
  const std::string id = run.id;
  note(run);
  runs_[id] = std::move(run);
  waiting_.push_back(id);
  next();
  return id;
}

void Simulations::next() {
  while (running_.empty() && !waiting_.empty()) {
    running_ = waiting_.front();
    waiting_.pop_front();
    Run& run = runs_[running_];
    if (const auto spawned = spawn(run); spawned) {
      run.state = Run::State::kRunning;
      loop_.spawn(await_end(ends_));
    } else {
      run.state = Run::State::kFailed;
      run.text = spawned.error().message;
      running_.clear();
    }
    note(run);
  }
}

Result<void> Simulations::spawn(Run& run) {
  std::vector<char*> argv;
  for (std::string& word : run.words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string where = place(run.id);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, where.c_str());
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "said.txt", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int problem =
      posix_spawn(&process_, program_.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) {
    process_ = -1;
    return fail(Code::kInternal, std::strerror(problem));
  }
  const rlimit cpu{kCpuSeconds, kCpuSeconds}, memory{kMemoryBytes, kMemoryBytes};
  (void)prlimit(process_, RLIMIT_CPU, &cpu, nullptr);
  (void)prlimit(process_, RLIMIT_AS, &memory, nullptr);
  (void)setpriority(PRIO_PROCESS, static_cast<id_t>(process_), kNice);
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, process_, 0));
  if (handle < 0) {
    const int why = errno;
    end_process();
    return fail(Code::kInternal, std::strerror(why));
  }
  ends_ = net::make_descriptor(loop_, handle);
  return {};
}

/// `process` was closed: nobody wants to know any more, and this may be gone.
Task<void> Simulations::await_end(std::shared_ptr<net::Descriptor> process) {
  const bool over = co_await process->readable();
  if (over) take_end();
}

void Simulations::take_end() {
  int status = 0;
  const pid_t ended = waitpid(process_, &status, WNOHANG);
  ends_.reset();
  process_ = -1;
  Run& run = runs_[running_];
  run.ended_ms = loop_.now().us / 1000;
  const bool good = ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  run.state = good ? Run::State::kDone : Run::State::kFailed;
  if (!good) {
    const auto said = read_file(place(run.id) + "/said.txt");
    run.text = said ? last_line(*said) : "";
    if (run.text.empty())
      run.text = WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU
                     ? fmt::format("it took more than {} s of CPU time", kCpuSeconds)
                     : "it ended without a result; perhaps it needed too much memory";
  }
  note(run);
  running_.clear();
  next();
}

void Simulations::note(const Run& run) const {
  json::Array words;
  for (const std::string& word : run.words) words.emplace_back(word);
  const json::Value kept{{"name", run.name},
                         {"user", run.user},
                         {"state", sim_state_name(run.state)},
                         {"began", run.began_ms},
                         {"ended", run.ended_ms},
                         {"text", run.text},
                         {"words", std::move(words)}};
  (void)write_private(place(run.id) + "/run.json", json::dump(kept) + "\n");
}

void Simulations::load() {
  if (std::exchange(loaded_, true)) return;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_, error)) {
    const auto text = read_file(entry.path().string() + "/run.json");
    const auto kept = text ? json::parse(*text) : fail(text.error());
    if (!kept) continue;
    Run run;
    run.id = entry.path().filename().string();
    run.name = json::text_at(*kept, "name");
    run.user = json::text_at(*kept, "user");
    run.began_ms = json::int_at(*kept, "began");
    run.ended_ms = json::int_at(*kept, "ended");
    run.text = json::text_at(*kept, "text");
    const bool done = json::string_at(*kept, "state") == "done";
    run.state = done ? Run::State::kDone : Run::State::kFailed;
    if (!done && run.text.empty()) run.text = "the server was restarted in the meantime";
    runs_[run.id] = std::move(run);
  }
}

std::vector<const Simulations::Run*> Simulations::all() {
  load();
  std::vector<const Run*> list;
  for (const auto& [id, run] : runs_) list.push_back(&run);
  std::reverse(list.begin(), list.end());
  return list;
}

const Simulations::Run* Simulations::find(const std::string& id) {
  load();
  const auto found = runs_.find(id);
  return found == runs_.end() ? nullptr : &found->second;
}

Result<std::string> Simulations::result(const std::string& id, const std::string& kind) const {
  return read_file(place(id) + (kind == "html" ? "/out.html" : "/out.json"));
}

void Simulations::remove(const std::string& id) {
  if (runs_.erase(id) == 0) return;
  std::erase(waiting_, id);
  if (running_ == id) {
    end_process();
    running_.clear();
  }
  std::error_code error;
  fs::remove_all(place(id), error);
  next();
}

void Simulations::end_process() {
  if (ends_) ends_->close();
  ends_.reset();
  if (process_ <= 0) return;
  kill(process_, SIGKILL);
  while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
  process_ = -1;
}

void Simulations::stop() {
  waiting_.clear();
  end_process();
}

}  // namespace muster::portal
