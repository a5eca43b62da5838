#include "agent/process/mask.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "agent/fd.h"
#include "agent/files.h"
#include "agent/node/run_directory.h"
#include "base/log.h"
#include "base/strings.h"

extern char** environ;

namespace muster::agent::process {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHiddenDirectories[] = {"/root",
                                              "/home",
                                              "/boot",
                                              "/mnt",
                                              "/media",
                                              "/lost+found",
                                              "/var/lib/docker",
                                              "/var/lib/containerd",
                                              "/var/lib/kubelet",
                                              "/var/lib/rancher",
                                              "/var/lib/cloud",
                                              "/var/log",
                                              "/var/spool",
                                              "/etc/ssl/private",
                                              "/etc/kubernetes",
                                              "/etc/sudoers.d"};
constexpr const char* kHiddenFiles[] = {
    "/etc/shadow-", "/etc/gshadow-", "/etc/sudoers", "/etc/krb5.keytab"};

/// The directories above `path`, in the layer as they are on the machine: a merged directory shows
/// the mode and owner of its uppermost part.
Result<void> make_parents(const std::string& mask, const std::string& path) {
  std::string so_far;
  for (const auto& part : split_nonempty(fs::path(path).parent_path().string(), '/')) {
    so_far += "/" + part;
    struct stat info{};
    if (stat(so_far.c_str(), &info) != 0 || mkdir((mask + so_far).c_str(), 0755) != 0) {
      if (errno == EEXIST) continue;
      return fail(system_error(fmt::format("make \"{}{}\"", mask, so_far), errno));
    }
    chmod((mask + so_far).c_str(), info.st_mode & 07777);
    if (chown((mask + so_far).c_str(), info.st_uid, info.st_gid) != 0) continue;
  }
  return {};
}

/// Links in the way would have it hide something else.
bool is_there(const std::string& path, bool directory) {
  std::error_code error;
  const auto real = fs::canonical(path, error);
  if (error || real != path) return false;
  return directory ? fs::is_directory(path, error) : fs::exists(path, error);
}

Result<void> hide_directory(const std::string& mask, const std::string& path) {
  if (!is_there(path, true)) return {};
  const auto made = make_parents(mask, path);
  if (!made) return made;
  const auto place = mask + path;
  if (mkdir(place.c_str(), 0755) != 0 && errno != EEXIST)
    return fail(system_error(fmt::format("make \"{}\"", place), errno));
  chmod(place.c_str(), 0755);
  if (setxattr(place.c_str(), "trusted.overlay.opaque", "y", 1, 0) != 0)
    return fail(system_error(fmt::format("hide \"{}\"", path), errno));
  return {};
}

Result<void> hide_file(const std::string& mask, const std::string& path) {
  if (!is_there(path, false)) return {};
  const auto made = make_parents(mask, path);
  if (!made) return made;
  if (mknod((mask + path).c_str(), S_IFCHR, makedev(0, 0)) != 0)
    return fail(system_error(fmt::format("hide \"{}\"", path), errno));
  return {};
}

/// Users without passwords: PAM's account check wants an entry for each.
Result<void> replace_shadow(const std::string& mask, const std::string& path) {
  if (!is_there(path, false)) return {};
  const auto made = make_parents(mask, path);
  if (!made) return made;
  std::string out;
  for (const auto& line : split_nonempty(read_file(path), '\n')) {
    auto fields = split(line, ':');
    if (fields.size() > 1) fields[1] = "*";
    for (std::size_t i = 0; i < fields.size(); ++i) out += (i == 0 ? "" : ":") + fields[i];
    out += "\n";
  }
  return write_file(mask + path, out, 0644);
}

bool make_key(const std::string& path) {
  std::vector<std::string> words{
      "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "muster", "-f", path};
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  if (posix_spawnp(&pid, argv[0], nullptr, nullptr, argv.data(), environ) != 0) return false;
  int status = 1;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// ssh from one pod to another, by the names that services give them, knows that key and asks nobody:
/// mpirun has nobody to ask.
Result<void> make_known(const std::string& mask, const std::string& key) {
  const std::string path = "/etc/ssh/ssh_known_hosts";
  auto known = read_file(path);
  if (!known.empty() && !known.ends_with('\n')) known += '\n';
  known += "*.svc,*.svc.cluster.local " + read_file(mask + key + ".pub");
  return write_file(mask + path, known, 0644);
}

/// The machine's host keys are its identity; sshd in a pod gets one of this muster's own.
Result<void> replace_host_keys(const std::string& mask) {
  std::error_code error;
  std::vector<std::string> keys;
  for (fs::directory_iterator item("/etc/ssh", error), end; !error && item != end;
       item.increment(error)) {
    const auto name = item->path().filename().string();
    if (name.starts_with("ssh_host_")) keys.push_back(item->path().string());
  }
  const std::string own = "/etc/ssh/ssh_host_ed25519_key";
  for (const auto& key : keys) {
    if (key == own || key == own + ".pub") continue;
    const auto hidden = hide_file(mask, key);
    if (!hidden) return hidden;
  }
  if (keys.empty()) return {};
  const auto made = make_parents(mask, own);
  if (!made) return made;
  if (make_key(mask + own)) {
    // Root of a pod is not who it belongs to. It is the key of pods alone.
    chmod((mask + own).c_str(), 0644);
    return make_known(mask, own);
  }
  log::warn("agent", "sshd in pods has no host key: ssh-keygen does not work here");
  return hide_file(mask, own);
}

Result<void> make_mask(const std::string& mask,
                       const std::string& data,
                       const std::vector<std::string>& hide) {
  if (mkdir(mask.c_str(), 0755) != 0) return fail(system_error("make \"" + mask + "\"", errno));
  std::vector<std::string> directories(std::begin(kHiddenDirectories),
                                       std::end(kHiddenDirectories));
  if (!data.empty()) directories.push_back(data);
  Result<void> done;
  for (const auto& path : hide) {
    std::error_code error;
    if (fs::is_directory(path, error))
      directories.push_back(path);
    else if (done)
      done = hide_file(mask, path);
  }
  for (const auto& path : directories) {
    if (done) done = hide_directory(mask, path);
  }
  for (const auto* path : kHiddenFiles) {
    if (done) done = hide_file(mask, path);
  }
  for (const auto* path : {"/etc/shadow", "/etc/gshadow"}) {
    if (done) done = replace_shadow(mask, path);
  }
  if (done) done = replace_host_keys(mask);
  return done;
}

constexpr const char* kOwnPlaces[] = {"/etc",
                                      "/opt",
                                      "/srv",
                                      "/mnt",
                                      "/media",
                                      "/usr/local",
                                      "/usr/local/bin",
                                      "/usr/local/etc",
                                      "/usr/local/lib",
                                      "/usr/local/share",
                                      "/var",
                                      "/var/cache",
                                      "/var/lib",
                                      "/var/log",
                                      "/var/opt"};

/// What every image is given mounts at. It lies below the image's layers, so that what the image
/// has itself stays as it is, and nothing need be made in a container's own layer, on disk, when it
/// starts.
Result<void> make_floor(const std::string& floor) {
  for (const auto* name : {"", "/dev", "/proc", "/sys", "/etc", "/tmp"}) {
    const auto path = floor + name;
    if (mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)
      return fail(system_error(fmt::format("make \"{}\"", path), errno));
    chmod(path.c_str(), path.ends_with("/tmp") ? 01777 : 0755);
  }
  for (const auto* name : {"/etc/hosts", "/etc/resolv.conf"}) {
    const auto made = write_file(floor + name, "");
    if (!made) return made;
  }
  // Seen by containers that share the machine's network, and so its name.
  return write_file(floor + "/etc/hostname", read_file("/proc/sys/kernel/hostname", 256));
}

/// /root, /home or /home/SOMEBODY.
bool is_home(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  const auto slashes = std::count(path.begin(), path.end(), '/');
  return slashes <= 1 || (slashes == 2 && path.starts_with("/home/"));
}

std::string place_of(const std::string& directory) { return directory + "/root"; }
std::string ahead_of(const std::string& directory) { return directory + "/ahead"; }

}  // namespace

void make_own_places(const std::string& layer, uid_t owner) {
  mkdir((layer + "/usr").c_str(), 0755);
  for (const std::string place : kOwnPlaces) {
    struct stat info{};
    // A merged directory shows the mode and owner of its uppermost part.
    if (lstat((place + "/").c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) continue;
    const auto made = layer + place;
    if (mkdir(made.c_str(), 0755) != 0 && errno != EEXIST) continue;
    chmod(made.c_str(), 0755);  // whatever the umask
    (void)!chown(made.c_str(), owner, owner);
  }
}

std::string below_of(const RootPlan& plan) { return plan.place + "/below"; }

std::vector<std::string> shown_by_environment(const std::vector<std::string>& values) {
  std::vector<std::string> out;
  for (const auto& value : values) {
    for (auto path : split_nonempty(value, ':')) {
      const bool hidden = path.starts_with("/root/") || path.starts_with("/home/");
      if (!hidden) continue;
      // The environment is what holds bin and lib; but ~/bin is none, and nobody's home is shown.
      for (const std::string_view end : {"/bin", "/shims"}) {
        if (path.ends_with(end) && !is_home(path.substr(0, path.size() - end.size())))
          path.resize(path.size() - end.size());
      }
      if (is_home(path)) continue;
      // One of them shows all that is below it, whichever PATH names first.
      const bool known = std::any_of(out.begin(), out.end(), [&path](const std::string& one) {
        return path == one || path.starts_with(one + "/");
      });
      if (known) continue;
      std::erase_if(out, [&path](const std::string& one) { return one.starts_with(path + "/"); });
      out.push_back(path);
    }
  }
  return out;
}

std::string shown_for_program(const std::string& program) {
  for (const auto* covered : {"/root/", "/home/", "/tmp/", "/var/tmp/"}) {
    if (program.starts_with(covered)) return program;
  }
  return "";
}

namespace {

/// What all plans have.
/// Folders of supervisors that waited for a pod when their agent ended are nobody's. One that has a
/// pod may be about to move in: it finds its folder whole or, at once, not at all.
Result<void> empty_ahead(const std::string& ahead) {
  const auto old = ahead + ".old";
  std::error_code ignored;
  fs::remove_all(old, ignored);
  for (const auto* path : {&ahead, &old}) {
    const auto made = make_directory(*path);
    if (!made) return made;
  }
  if (renameat2(AT_FDCWD, old.c_str(), AT_FDCWD, ahead.c_str(), RENAME_EXCHANGE) != 0)
    return fail(system_error(fmt::format("empty \"{}\"", ahead), errno));
  fs::remove_all(old, ignored);
  return {};
}

Result<RootPlan> begin_plan(const std::string& directory, const Seen& seen) {
  RootPlan plan;
  std::error_code error;
  plan.hidden = seen.hidden.empty() ? seen.hidden : fs::canonical(seen.hidden, error).string();
  plan.place = place_of(directory);
  plan.for_images = seen.images;
  plan.ahead = ahead_of(directory);
  const auto ahead = empty_ahead(plan.ahead);
  if (!ahead) return fail(ahead.error());
  const auto placed = prepare_run_directory(plan.place);
  if (!placed) return fail(placed.error());
  for (const auto* name : {"/scratch", "/below", "/merged"})
    mkdir((plan.place + name).c_str(), 0700);
  std::vector<std::string> values;
  for (const auto* name : {"VIRTUAL_ENV", "CONDA_PREFIX", "PATH"}) {
    if (const char* value = std::getenv(name); value != nullptr) values.emplace_back(value);
  }
  for (auto& path : shown_by_environment(values)) {
    if (fs::is_directory(path, error)) plan.show.push_back(std::move(path));
  }
  for (const auto& path : seen.show) {
    const auto plain = path.substr(0, path.size() - (path.ends_with(":rw") ? 3 : 0));
    if (fs::exists(plain, error))
      plan.show.push_back(path);
    else
      log::warn("agent", "\"{}\" of host.show in the image file does not exist", plain);
  }
  // The kubectl of an MPI launcher is a link to this program, wherever it was built.
  const auto program = shown_for_program(fs::read_symlink("/proc/self/exe", error).string());
  if (!program.empty()) plan.show.push_back(program);
  return plan;
}

}  // namespace

Result<RootPlan> prepare_roots(const std::string& directory, const Seen& seen) {
  auto plan = begin_plan(directory, seen);
  if (!plan) return plan;
  plan->mask = plan->place + "/mask";
  std::error_code error;
  if (!fs::exists(plan->mask + ".done", error)) {  // as containers of an earlier agent use it
    fs::remove_all(plan->mask, error);
    const auto made = make_mask(plan->mask, plan->hidden, seen.hide);
    if (!made) return fail(made.error());
    (void)write_file(plan->mask + ".done", "");
  }
  plan->places = plan->place + "/places";
  if (mkdir(plan->places.c_str(), 0755) == 0 || errno == EEXIST) {
    chmod(plan->places.c_str(), 0755);
    make_own_places(plan->places, 0);
  }
  if (!seen.images) return plan;
  plan->floor = plan->place + "/floor";
  const auto made = make_floor(plan->floor);
  if (!made) return fail(made.error());
  return plan;
}

Result<RootPlan> prepare_bound_roots(const std::string& directory, const Seen& seen) {
  auto plan = begin_plan(directory, seen);
  if (!plan) return plan;
  plan->bound = true;
  for (const std::string path : kHiddenDirectories) {
    const bool empty_anyway = path.find('/', 1) == std::string::npos;
    if (!empty_anyway && is_there(path, true)) plan->covered.push_back(path);
  }
  for (const auto& path : seen.hide) {
    if (is_there(path, true)) plan->covered.push_back(path);
  }
  if (!plan->hidden.empty()) plan->covered.push_back(plan->hidden);
  return plan;
}

void remove_roots(const std::string& directory) {
  remove_run_directory(place_of(directory));
  std::error_code ignored;
  fs::remove_all(ahead_of(directory), ignored);
}

}  // namespace muster::agent::process
