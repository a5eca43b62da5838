/// The files of tests/data. They are part of the repository: one that cannot be read is an error of
/// the test, never a reason to skip it.
#pragma once

#include <filesystem>
#include <string>

namespace muster::tests {

/// tests/data of the tree that this program was built from.
std::filesystem::path data_folder();

/// The whole file, named as seen from tests/data; throws when it cannot be read.
std::string read_data(const std::string& name);

}  // namespace muster::tests
