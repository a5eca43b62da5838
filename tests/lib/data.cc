#include "lib/data.h"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace muster::tests {

std::filesystem::path data_folder() { return MUSTER_TEST_DATA; }

std::string read_data(const std::string& name) {
  const auto path = data_folder() / name;
  std::ifstream in(path);
  if (!in)
    throw std::runtime_error("cannot read " + path.string() + ", which is in the repository");
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace muster::tests
