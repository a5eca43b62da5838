// vectors PATH…: runs scenario files (folders are searched for *.json), prints a line for each way
// a file fails, and closes with "N passed, N failed".
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runner.h"

namespace muster::vectors {

std::vector<Format>& formats() {
  static std::vector<Format> all;
  return all;
}

namespace {

namespace fs = std::filesystem;

std::vector<std::string> collect(int argc, char** argv) {
  std::vector<std::string> files;
  for (int i = 1; i < argc; ++i) {
    if (fs::is_directory(argv[i])) {
      for (const auto& entry : fs::recursive_directory_iterator(argv[i])) {
        if (entry.is_regular_file() && entry.path().extension() == ".json")
          files.push_back(entry.path().string());
      }
    } else {
      files.emplace_back(argv[i]);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

Failures run_file(const std::string& path) {
  std::ifstream in(path);
  if (!in) return {{"-", "a readable file", "cannot open it"}};
  std::stringstream text;
  text << in.rdbuf();
  const auto value = json::parse(text.str());
  if (!value) return {{"-", "JSON", value.error().message}};
  for (const auto& format : formats()) {
    if (format.claims(path, *value)) return format.run(path, *value);
  }
  return {{"-", "a known scenario format", "none of the readers knows this file"}};
}

int run(int argc, char** argv) {
  const auto files = collect(argc, argv);
  if (files.empty()) {
    fmt::print(stderr, "usage: vectors PATH… (files or folders of scenario files); none found\n");
    return 2;
  }
  int passed = 0;
  int failed = 0;
  for (const auto& path : files) {
    const Failures failures = run_file(path);
    (failures.empty() ? passed : failed) += 1;
    for (const auto& f : failures)
      fmt::print("{}: step {}: wanted {}, got {}\n", path, f.step, f.wanted, f.got);
  }
  for (const auto& format : formats()) {
    if (format.summary != nullptr) format.summary();
  }
  fmt::print("{} passed, {} failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace muster::vectors

int main(int argc, char** argv) { return muster::vectors::run(argc, argv); }
