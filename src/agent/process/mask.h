/// What of this machine's files no pod sees: the layer between "/" and what a container writes.
///
/// A container of the host image has an overlay of "/" as its root. In this layer lie opaque
/// directories in place of those that are nobody's business (the data folder, people's homes, logs,
/// keys), whiteouts in place of files, and harmless files where programs need one: a shadow file
/// without a password, a host key for sshd. It is made once, lies in memory (an overlay refuses a
/// layer that is on the same file system as "/"), and is used by the containers of later agents as
/// it is.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace muster::agent::process {

/// What the roots of all containers of the host image have in common.
struct RootPlan {
  bool bound = false;  // not root: made as bound_root.h says, without a mask
  std::string place;   // holds `mask` and places for mounts; empty: containers have "/" itself
  std::string mask;
  std::string places;                // directories that are the container's own; empty: none
  std::string floor;                 // below all layers of an image: places for mounts; empty: none
  std::string ahead;                 // on disk: folders of containers to come
  bool for_images = false;           // containers of images are among them
  std::string hidden;                // the data folder
  std::vector<std::string> covered;  // of a bound root: empty in it
  /// Of what is hidden, bound at the same place: read-only, or "/path:rw".
  std::vector<std::string> show;
};

/// What of this machine pods see and do not, beyond the usual.
struct Seen {
  std::string hidden;  // the data folder; empty: none
  std::vector<std::string> show, hide;
  bool images = false;  // some containers are of images
};

/// Where a program that is root expects to be able to put something, as far as the machine has these
/// directories: made in a layer above it, where they belong to `owner`. What is in them stays as it is,
/// and so does /usr itself.
void make_own_places(const std::string& layer, uid_t owner);
/// A place for what lies below a root's own layer.
std::string below_of(const RootPlan& plan);

/// Below `directory`, the agent's. Blocking.
Result<RootPlan> prepare_roots(const std::string& directory, const Seen& seen);
/// The same where muster is not root.
Result<RootPlan> prepare_bound_roots(const std::string& directory, const Seen& seen);
/// No container may be left.
void remove_roots(const std::string& directory);

/// Entries of PATH, VIRTUAL_ENV and CONDA_PREFIX that lie below hidden folders: whoever starts
/// muster in an environment wants it in pods. Pure.
std::vector<std::string> shown_by_environment(const std::vector<std::string>& values);
/// A program that lies where pods have directories of their own, without what lies beside it; empty:
/// they see it anyway. Pure.
std::string shown_for_program(const std::string& program);

}  // namespace muster::agent::process
