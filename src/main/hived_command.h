/// `muster hived tree` and `muster hived check`: who sits on which cell, and what a new
/// configuration would do.
#pragma once

namespace muster {

int run_hived(int argc, char** argv);

}  // namespace muster
