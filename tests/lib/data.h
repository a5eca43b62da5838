/// The files of tests/data. They are part of the repository: if one cannot be read, the test fails
/// instead of being skipped.
#pragma once

#include <filesystem>
#include <string>

namespace muster::tests {

/// tests/data of the tree that this program was built from.
std::filesystem::path data_folder();

/// The whole file, named as seen from tests/data; throws when it cannot be read.
std::string read_data(const std::string& name);

}  // namespace muster::tests
