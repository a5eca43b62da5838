#include "main/data_dir.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

namespace muster {

std::string default_data_dir() {
  if (const char* home = std::getenv("MUSTER_HOME"); home != nullptr && *home != '\0') return home;
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr && *home != '\0' ? home : ".") + "/.muster";
}

std::string down_command(const std::string& directory) {
  std::error_code failure;
  const bool usual = std::filesystem::absolute(directory, failure) ==
                     std::filesystem::absolute(default_data_dir(), failure);
  return usual ? "muster down" : "muster down --data " + directory;
}

namespace {

/// Keys, tokens and every secret of the cluster lie here: an older muster, or a copy made by hand,
/// may have left them readable for others.
void narrow(const std::string& directory) {
  ::chmod(directory.c_str(), 0700);
  std::error_code failure;
  for (std::filesystem::directory_iterator item(directory, failure), end; !failure && item != end;
       item.increment(failure)) {
    struct stat info{};
    if (::lstat(item->path().c_str(), &info) != 0 || (info.st_mode & 077) == 0) continue;
    const auto name = item->path().filename().string();
    const bool ours = S_ISREG(info.st_mode) || S_ISSOCK(info.st_mode) ||
                      (S_ISDIR(info.st_mode) && (name == "agent" || name == "pki"));
    if (ours) ::chmod(item->path().c_str(), info.st_mode & 0700);
  }
}

}  // namespace

Result<DataLock> DataLock::take(const std::string& directory) {
  std::error_code failure;
  const bool made = std::filesystem::create_directories(directory, failure);
  if (made) ::chmod(directory.c_str(), 0700);
  if (failure)
    return fail(Code::kInternal,
                fmt::format("cannot make the data folder \"{}\": {}; choose another with --data",
                            directory,
                            failure.message()));
  const std::string path = directory + "/muster.lock";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0)
    return fail(Code::kInternal,
                fmt::format("cannot open \"{}\": {}; choose another folder with --data",
                            path,
                            std::strerror(errno)));
  if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
    ::close(file);
    const Running running = find_running(directory);
    return fail(
        Code::kConflict,
        fmt::format(
            "a muster already runs with the data folder \"{}\" (process {}); stop it with '{}', or choose another with --data",
            directory,
            running.pid,
            down_command(directory)));
  }
  narrow(directory);
  return DataLock(file, directory);
}

DataLock::~DataLock() {
  if (file_ < 0) return;
  ::unlink((directory_ + "/muster.pid").c_str());
  ::close(file_);
}

Result<void> DataLock::publish(const std::string& address) const {
  std::ofstream out(directory_ + "/muster.pid", std::ios::trunc);
  out << ::getpid() << '\n' << address << '\n';
  if (!out.flush())
    return fail(Code::kInternal, fmt::format("cannot write \"{}/muster.pid\"", directory_));
  return {};
}

Running find_running(const std::string& directory) {
  Running running;
  const int file = ::open((directory + "/muster.lock").c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return running;
  const bool free = ::flock(file, LOCK_EX | LOCK_NB) == 0;
  ::close(file);
  if (free) return running;
  std::ifstream in(directory + "/muster.pid");
  in >> running.pid >> running.address;
  if (running.pid == 0) running.pid = -1;  // starting: the lock is held, the file not yet written
  return running;
}

}  // namespace muster
