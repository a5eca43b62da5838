/// Files below a directory in which somebody else may write.
///
/// A pod can put a symbolic link wherever it may write, and can swap it in between a look and a
/// use. So nothing is looked at by name and used by name afterwards: the kernel resolves a path in
/// one step (openat2), refuses whatever leads out of the directory ("..", an absolute path, a link,
/// a link of /proc), and the descriptor it gives is what is used from then on.
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <string>

#include "agent/fd.h"
#include "base/result.h"

namespace muster::agent {

/// Relative, and no name in it is "..". What a user may call a path inside a volume.
bool stays_beneath(std::string_view path);

/// kNotFound: there is nothing. kForbidden: it leads out of the directory. Links that stay inside
/// are followed. Never waits for the other end of a pipe.
Result<Fd> open_beneath(int directory, const std::string& path, int flags = O_PATH);

/// Opens the directory at `path`, having made what was missing with `mode`, whatever the umask.
Result<Fd> make_directories_beneath(int directory, const std::string& path, mode_t mode);

/// A new file with this content; an existing one, or a link in its place, is an error.
Result<void> write_beneath(int directory,
                           const std::string& path,
                           std::string_view content,
                           mode_t mode);

/// hostPath's `type` of what is open, e.g. "Directory"; `path` is for the message. "" and unknown
/// ones fit everything.
Result<void> check_host_type(int fd, const std::string& type, const std::string& path);

}  // namespace muster::agent
