/// The image of a sandbox: one layer with one small program (pause.c), as an archive that a
/// container runtime imports. Made here, because machines without a network cannot pull one.
#pragma once

#include <string>
#include <string_view>

namespace muster::agent::cri {

inline constexpr const char* kPauseImage = "localhost/muster/pause:1";

/// A tar in OCI's layout. Pure.
std::string pause_archive();

/// One file of a tar. Pure.
std::string tar_entry(std::string_view name, std::string_view content, int mode);

}  // namespace muster::agent::cri
