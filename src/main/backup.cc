/// `muster backup` and `muster restore`: everything a cluster knows, as one file.
#include "store/backup.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>

#include "base/files.h"
#include "main/data_dir.h"
#include "main/up.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

std::string data_dir(const command::Values& values) {
  const std::string given = values.given("data") ? values.text("data") : default_data_dir();
  return fs::absolute(given).lexically_normal().string();
}

/// What the objects are worth nothing without: the CA, the keys of tokens, the first password.
Result<std::vector<store::SmallFile>> read_small_files(const std::string& data) {
  std::vector<std::string> names;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(data + "/pki", failure)) {
    if (entry.is_regular_file()) names.push_back("pki/" + entry.path().filename().string());
  }
  if (fs::exists(data + "/admin-password")) names.emplace_back("admin-password");
  std::vector<store::SmallFile> files;
  for (const std::string& name : names) {
    auto bytes = read_file(data + "/" + name);
    if (!bytes) return fail(bytes.error());
    files.push_back({name, std::move(*bytes)});
  }
  return files;
}

/// A backup may come from anywhere, so it names nothing outside of the folder.
bool is_ours(const std::string& name) {
  return name == "admin-password" ||
         (name.starts_with("pki/") && name.find('/', 4) == std::string::npos && name.size() > 4 &&
          name[4] != '.');
}

Result<void> write_small_files(const std::string& data,
                               const std::vector<store::SmallFile>& files) {
  fs::create_directories(data + "/pki");
  ::chmod((data + "/pki").c_str(), 0700);
  for (const store::SmallFile& file : files) {
    if (!is_ours(file.name))
      return fail(
          Code::kInvalid,
          fmt::format("the backup contains \"{}\", which is not a file of a cluster", file.name));
    const auto written = write_private(data + "/" + file.name, file.bytes);
    if (!written) return written;
  }
  return {};
}

Time wall_time() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return Time{std::chrono::duration_cast<std::chrono::microseconds>(since).count()};
}

int run_backup(command::Call& call) {
  if (call.values.args.size() != 1)
    return call.misused("wanted one name for the new file, e.g. cluster.backup");
  const std::string& to = call.values.args[0];
  if (fs::exists(to))
    return call.failed(fmt::format("\"{}\" exists already: choose another name, or remove it", to));
  const std::string data = data_dir(call.values);
  ::umask(077);
  auto files = read_small_files(data);
  if (!files) return call.failed(files.error().message);
  const auto made = store::back_up(data + "/muster.db", to, std::move(*files));
  if (!made) return call.failed(made.error().message);
  fmt::print("{}: {} objects of revision {}, and the cluster's keys; keep it as safe as the keys\n",
             to,
             made->records,
             made->revision);
  return 0;
}

int run_restore(command::Call& call) {
  if (call.values.args.size() != 1)
    return call.misused("wanted one file that 'muster backup' made, e.g. cluster.backup");
  const std::string data = data_dir(call.values);
  ::umask(077);
  const auto lock = DataLock::take(data);
  if (!lock) return call.failed(lock.error().message);
  for (const char* name : {"muster.db", "muster.db-wal", "pki"}) {
    if (!fs::exists(data + "/" + name)) continue;
    return call.failed(fmt::format(
        "the data folder \"{}\" has a cluster already ({}): choose another with --data, or move it away",
        data,
        name));
  }
  // The keys before the database: a folder without one is no cluster yet.
  const auto made = store::restore(call.values.args[0], data + "/muster.db.restored", wall_time());
  if (!made) return call.failed(made.error().message);
  auto written = write_small_files(data, made->files);
  std::error_code failure;
  if (written) fs::rename(data + "/muster.db.restored", data + "/muster.db", failure);
  if (failure) written = fail(Code::kInternal, failure.message());
  if (!written) {
    fs::remove(data + "/muster.db.restored", failure);
    fs::remove_all(data + "/pki", failure);
    return call.failed(written.error().message);
  }
  fmt::print(
      "{} objects restored; start the cluster with 'muster up --data {}'\n", made->records, data);
  return 0;
}

command::Command with_data(std::string name, std::string summary, command::Run run) {
  command::Command made;
  made.name = std::move(name);
  made.arguments = "FILE";
  made.summary = std::move(summary);
  made.flags = {{.name = "data",
                 .help = "the cluster's folder (default $MUSTER_HOME, else ~/.muster)",
                 .completes = command::Completes::kFiles,
                 .value_name = "FOLDER"}};
  made.completes = command::Completes::kFiles;
  made.run = std::move(run);
  return made;
}

}  // namespace

command::Command backup_command() {
  command::Command made = with_data("backup", "Back up the cluster to one file", run_backup);
  made.details =
      "The cluster may be running and in use: the backup is a consistent snapshot. It contains all objects and the cluster's keys, but no files of pods and volumes, images or logs.";
  made.examples = "  muster backup cluster-$(date +%F).backup\n";
  return made;
}

command::Command restore_command() {
  command::Command made =
      with_data("restore", "Restore a cluster's folder from a backup", run_restore);
  made.details =
      "The folder must have no cluster yet. Earlier kubeconfigs and tokens keep working; watching clients list again; pods that were running start again if their restart policy says so.";
  made.examples =
      "  muster restore cluster-2026-11-16.backup\n"
      "  muster restore cluster-2026-11-16.backup --data /srv/muster && muster up --data /srv/muster\n";
  return made;
}

}  // namespace muster
