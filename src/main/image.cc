/// `muster image`: images of a cluster that `muster up --image-source containerd` started.
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "agent/files.h"
#include "agent/image/image_source.h"
#include "agent/image/listening.h"
#include "base/strings.h"
#include "main/data_dir.h"
#include "main/up.h"

namespace muster {
namespace {

/// A containerd that has just been started answers within a second, unless the machine is very busy.
constexpr Duration kPatience = std::chrono::seconds(30);

/// Whether the cluster's containerd runs, be it only just; its process id is known before it answers.
bool runs(const std::string& folder) {
  const auto pid = parse_int(trim(agent::read_file(folder + "/pid", 32))).value_or(0);
  return pid > 0 && (::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM);
}

int run_import(command::Call& call) {
  const auto& files = call.values.args;
  if (files.empty()) return call.misused("wanted one or more archives, e.g. train.tar");
  const std::string data =
      call.values.given("data") ? call.values.text("data") : default_data_dir();
  const std::string folder = data + "/containerd", socket = folder + "/containerd.sock";
  if (!runs(folder))
    return call.failed(fmt::format(
        "no containerd runs with the data folder \"{}\": start the cluster with 'muster "
        "up --image-source containerd', or put the archive into {}/images and start it "
        "then",
        data,
        data));
  if (!agent::image::await_listening(socket, kPatience))
    return call.failed(fmt::format(
        "containerd does not answer at {} after {} s; what it said is in {}/containerd.log",
        socket,
        std::chrono::duration_cast<std::chrono::seconds>(kPatience).count(),
        folder));
  for (const auto& file : files) {
    if (::access(file.c_str(), R_OK) != 0)
      return call.failed(fmt::format("\"{}\" cannot be read", file));
    const auto imported = agent::image::import_archive(socket, file);
    if (!imported) return call.failed(imported.error().message);
    fmt::print("{}\n", *imported);
  }
  return 0;
}

}  // namespace

command::Command image_command() {
  command::Command import;
  import.name = "import";
  import.arguments = "FILE…";
  import.summary = "Add images from archives, without a registry";
  import.details =
      "FILE is what 'docker save' writes, or an archive in OCI's layout. Archives in the folder 'images' of the data folder are imported at each start.";
  import.examples =
      "  docker save registry.example/train:1 > train.tar\n"
      "  muster image import train.tar\n";
  import.flags = {{.name = "data",
                   .help = "the cluster's folder (default $MUSTER_HOME, else ~/.muster)",
                   .completes = command::Completes::kFiles,
                   .value_name = "FOLDER"}};
  import.completes = command::Completes::kFiles;
  import.run = run_import;
  command::Command made;
  made.name = "image";
  made.summary = "Add images to the cluster on this machine";
  made.examples = "  muster image import train.tar\n";
  made.children = {import};
  return made;
}

}  // namespace muster
