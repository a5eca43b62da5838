#include "agent/process/child.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <grp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "agent/beneath.h"
#include "agent/process/capabilities.h"
#include "agent/process/devices.h"
#include "agent/process/messages.h"
#include "base/strings.h"

extern char** environ;

namespace muster::agent::process {
namespace {

void note_made(const std::string& notes_file, const std::string& path) {
  const Fd file(open(notes_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const auto line = path + "\n";
  if (file && write(file.get(), line.data(), line.size()) < 0) return;
}

/// Makes missing directories down to `path`; those made are noted so that they can be removed some
/// day.
Result<void> make_directories(const std::string& path, const std::string& notes_file) {
  std::string so_far;
  for (const auto& part : split_nonempty(path, '/')) {
    so_far += "/" + part;
    if (mkdir(so_far.c_str(), 0755) == 0) {
      if (!notes_file.empty()) note_made(notes_file, so_far);
    } else if (errno != EEXIST) {
      return fail(system_error(fmt::format("make directory \"{}\"", so_far), errno));
    }
  }
  return {};
}

Result<void> make_target(const std::string& target, bool directory, const std::string& notes_file) {
  struct stat info{};
  if (stat(target.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode) == directory) return {};
    return fail(Code::kInvalid,
                fmt::format("mount path \"{}\": {} is mounted onto {}",
                            target,
                            directory ? "a directory" : "a file",
                            directory ? "a file" : "a directory"));
  }
  if (directory) return make_directories(target, notes_file);
  const auto made = make_directories(target.substr(0, target.rfind('/')), notes_file);
  if (!made) return made;
  const Fd file(open(target.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!file) return fail(system_error(fmt::format("make mount point \"{}\"", target), errno));
  if (!notes_file.empty()) note_made(notes_file, target);
  return {};
}

/// A detached copy of the mount at `source`, to be attached after the root has changed.
struct DetachedMount {
  Fd fd;
  bool directory = true;
  const Mount* mount = nullptr;
};

/// What the mount shows, opened. A directory that a subPath names and that is not there is made like
/// the volume it is in.
Result<Fd> open_source(const Mount& mount) {
  Fd root(open(mount.source.c_str(), O_PATH | O_CLOEXEC));
  if (!root) return fail(system_error(fmt::format("mount source \"{}\"", mount.source), errno));
  const auto checked = check_host_type(root.get(), mount.host_type, mount.source);
  if (!checked) return fail(checked.error());
  if (mount.sub_path.empty()) return root;
  auto opened = open_beneath(root.get(), mount.sub_path);
  if (opened || opened.error().code != Code::kNotFound) return opened;
  struct stat info{};
  if (fstat(root.get(), &info) != 0)
    return fail(system_error(fmt::format("mount source \"{}\"", mount.source), errno));
  return make_directories_beneath(root.get(), mount.sub_path, info.st_mode & 07777);
}

Result<DetachedMount> detach(const Mount& mount) {
  const auto source = open_source(mount);
  if (!source) return fail(source.error());
  struct stat info{};
  if (fstat(source->get(), &info) != 0)
    return fail(system_error(fmt::format("mount source \"{}\"", mount.source), errno));
  DetachedMount out;
  out.directory = S_ISDIR(info.st_mode);
  out.mount = &mount;
  // Of what was opened, not of what its name may stand for by now.
  out.fd.reset(open_tree(
      source->get(), "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE));
  if (!out.fd) return fail(system_error(fmt::format("clone mount \"{}\"", mount.source), errno));
  return out;
}

Result<void> attach(const DetachedMount& mount, const std::string& notes_file) {
  const auto& target = mount.mount->target;
  const auto made = make_target(target, mount.directory, notes_file);
  if (!made) return made;
  if (move_mount(mount.fd.get(), "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0) {
    return fail(
        system_error(fmt::format("mount \"{}\" at \"{}\"", mount.mount->source, target), errno));
  }
  if (mount.mount->read_only &&
      ::mount(nullptr, target.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0) {
    return fail(system_error(fmt::format("make \"{}\" read-only", target), errno));
  }
  return {};
}

/// An overlay over the image's directory becomes the root: the directory itself is never changed.
Result<void> change_root(const ShimConfig& shim, const ContainerConfig& config) {
  const auto base = shim.sandbox.directory + "/rootfs-" + config.name;
  // What an earlier attempt made of its root, links in place of directories among it, is gone.
  std::error_code ignored;
  std::filesystem::remove_all(base, ignored);
  const auto made = make_directories(base + "/upper", "");
  if (!made) return made;
  (void)make_directories(base + "/work", "");
  (void)make_directories(base + "/merged", "");
  const auto merged = base + "/merged";
  const auto options =
      fmt::format("lowerdir={},upperdir={}/upper,workdir={}/work", config.root, base, base);
  if (::mount("overlay", merged.c_str(), "overlay", 0, options.c_str()) != 0) {
    return fail(system_error(fmt::format("overlay over image root \"{}\"", config.root), errno));
  }
  for (const auto* shared : {"/dev", "/sys", "/proc"}) {
    mkdir((merged + shared).c_str(), 0755);
    if (::mount(shared, (merged + shared).c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) {
      return fail(system_error(fmt::format("bind \"{}\" into the image root", shared), errno));
    }
  }
  mkdir((merged + "/etc").c_str(), 0755);
  mkdir((merged + "/tmp").c_str(), 01777);
  for (const auto* file : {"/etc/hosts", "/etc/resolv.conf", "/etc/hostname"}) {
    struct stat info{};
    if (stat(file, &info) != 0) continue;
    unlink((merged + file).c_str());  // a link of the image would lead the mount astray
    const Fd place(open((merged + file).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    (void)::mount(file, (merged + file).c_str(), nullptr, MS_BIND, nullptr);
  }
  if (chdir(merged.c_str()) != 0 || syscall(SYS_pivot_root, ".", ".") != 0 ||
      umount2(".", MNT_DETACH) != 0 || chdir("/") != 0) {
    return fail(system_error("change root", errno));
  }
  return {};
}

/// Settings of the kernel, the pod's network among them, are for privileged containers alone: file
/// permissions would let any root write them.
Result<void> mount_proc(bool privileged) {
  constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  if (::mount("proc", "/proc", "proc", kFlags, nullptr) != 0)
    return fail(system_error("mount /proc", errno));
  if (privileged) return {};
  if (::mount("/proc/sys", "/proc/sys", nullptr, MS_BIND, nullptr) != 0 ||
      ::mount(nullptr, "/proc/sys", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | kFlags, nullptr) !=
          0)
    return fail(system_error("make /proc/sys read-only", errno));
  return {};
}

/// Control groups among them: who could write there could leave its limits. Whatever is mounted
/// below goes with it.
Result<void> protect_sys() {
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  if (mount_setattr(AT_FDCWD, "/sys", AT_RECURSIVE, &attributes, sizeof attributes) != 0 &&
      errno != EINVAL && errno != ENOENT)
    return fail(system_error("make /sys read-only", errno));
  return {};
}

void bind_file(const std::string& source, const char* target) {
  if (!source.empty()) (void)::mount(source.c_str(), target, nullptr, MS_BIND, nullptr);
}

}  // namespace

Result<void> prepare_pod(const ShimConfig& config) {
  const auto& sandbox = config.sandbox;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0)
    return fail(system_error("make mounts private", errno));
  if (!sandbox.hostname.empty() && !sandbox.host_network) {
    if (sethostname(sandbox.hostname.data(), std::min<std::size_t>(sandbox.hostname.size(), 64)) !=
        0)
      return fail(system_error("set hostname", errno));
    const auto path = sandbox.run_directory + "/hostname";
    const Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    const auto line = sandbox.hostname + "\n";
    if (file && write(file.get(), line.data(), line.size()) > 0) bind_file(path, "/etc/hostname");
  }
  bind_file(sandbox.hosts_file, "/etc/hosts");
  bind_file(sandbox.resolv_conf_file, "/etc/resolv.conf");
  if (!sandbox.host_ipc &&
      ::mount("shm", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") != 0 &&
      errno != ENOENT) {
    return fail(system_error("mount /dev/shm", errno));
  }
  for (const auto& volume : sandbox.memory_volumes) {
    auto options = volume.group >= 0 ? fmt::format("mode=2777,gid={}", volume.group)
                                     : std::string("mode=1777");
    if (volume.size_bytes > 0) options += fmt::format(",size={}", volume.size_bytes);
    if (::mount("tmpfs", volume.path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) !=
        0) {
      return fail(system_error(fmt::format("mount memory volume \"{}\"", volume.path), errno));
    }
  }
  return {};
}

Result<void> prepare_container(const ShimConfig& shim,
                               const ContainerConfig& config,
                               bool own_pid_namespace) {
  const bool own_root = !config.root.empty() && config.root != "/";
  const auto notes = own_root ? std::string() : shim.mountpoints_file;
  auto mounts = config.mounts;
  if (!config.termination_message_path.empty())
    mounts.push_back(
        {config.termination_message_file, config.termination_message_path, false, "", ""});
  // Parents before children, whatever order the pod lists them in.
  std::sort(mounts.begin(), mounts.end(), [](const Mount& a, const Mount& b) {
    return a.target < b.target;
  });
  std::vector<DetachedMount> detached;
  for (const auto& mount : mounts) {
    auto one = detach(mount);
    if (!one) return fail(one.error());
    detached.push_back(std::move(*one));
  }
  if (own_root) {
    const auto changed = change_root(shim, config);
    if (!changed) return changed;
  }
  if (!config.privileged && (own_root || machine_has_gpus())) {
    const auto own = mount_devices(config.gpus, config.tty);
    if (!own) return own;
  }
  if (own_pid_namespace) {
    const auto own = mount_proc(config.privileged);
    if (!own) return own;
  }
  if (!config.privileged) {
    const auto done = protect_sys();
    if (!done) return done;
  }
  for (const auto& mount : detached) {
    const auto attached = attach(mount, notes);
    if (!attached) return attached;
  }
  if (!config.working_dir.empty()) {
    const auto made = make_directories(config.working_dir, notes);
    if (!made) return made;
  }
  if (config.read_only_root &&
      ::mount(nullptr, "/", nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY, nullptr) != 0) {
    return fail(system_error("make the root read-only", errno));
  }
  return {};
}

std::string become(const ContainerConfig& config,
                   const std::vector<std::string>& args,
                   const ChildStreams& streams) {
  setsid();
  if (streams.tty) ioctl(streams.in, TIOCSCTTY, 0);
  int in = streams.in >= 0 ? streams.in : open("/dev/null", O_RDONLY);
  int out = streams.out >= 0 ? streams.out : open("/dev/null", O_WRONLY);
  int err = streams.err >= 0 ? streams.err : open("/dev/null", O_WRONLY);
  dup2(in, 0);
  dup2(out, 1);
  dup2(err, 2);
  if (!config.working_dir.empty() && chdir(config.working_dir.c_str()) != 0) {
    return fmt::format(
        "chdir to cwd ({}) failed: {}", muster::quoted(config.working_dir), std::strerror(errno));
  }
  if (config.no_new_privileges) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (geteuid() == 0 && !config.privileged)
    limit_capabilities(capability_set(config.add_capabilities, config.drop_capabilities));
  if (geteuid() == 0 && (config.user || config.group || !config.groups.empty())) {
    std::vector<gid_t> groups(config.groups.begin(), config.groups.end());
    if (setgroups(groups.size(), groups.data()) != 0)
      return fmt::format("set groups: {}", std::strerror(errno));
    if (config.group && setgid(static_cast<gid_t>(*config.group)) != 0)
      return fmt::format("set group: {}", std::strerror(errno));
    if (config.user && setuid(static_cast<uid_t>(*config.user)) != 0)
      return fmt::format("set user: {}", std::strerror(errno));
  }
  std::vector<char*> env;
  for (const auto& item : config.env) env.push_back(const_cast<char*>(item.c_str()));
  env.push_back(nullptr);
  environ = env.data();
  std::vector<char*> argv;
  for (const auto& item : args) argv.push_back(const_cast<char*>(item.c_str()));
  argv.push_back(nullptr);
  for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvp(argv[0], argv.data());
  if (errno == ENOENT && args[0].find('/') == std::string::npos)
    return fmt::format("exec: {}: executable file not found in $PATH", muster::quoted(args[0]));
  return fmt::format("exec: {}: {}",
                     muster::quoted(args[0]),
                     errno == ENOENT   ? "no such file or directory"
                     : errno == EACCES ? "permission denied"
                                       : std::strerror(errno));
}

int run_init(int main_pid) {
  close_range(0, ~0U, 0);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  for (;;) {
    siginfo_t info{};
    const int signal = sigwaitinfo(&all, &info);
    if (signal < 0) continue;
    if (signal != SIGCHLD) {
      kill(main_pid, signal);
      continue;
    }
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid == main_pid)
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
  }
}

}  // namespace muster::agent::process
