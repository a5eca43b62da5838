// engine_bench [decisions gang fgd-openb backfill-philly backfill-learned deep-backlog copies preempt-min scale]: all by default.
#include <sys/resource.h>
#include <zlib.h>

#include <array>
#include <cstring>
#include <functional>
#include <utility>

#include "base/strings.h"
#include "bench.h"
#include "lib/data.h"

namespace muster::bench {

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto s = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return s(usage.ru_utime) + s(usage.ru_stime);
}

std::string traces_folder() { return (tests::data_folder() / "traces").string(); }

std::vector<std::vector<std::string>> read_csv(const std::string& path) {
  std::vector<std::vector<std::string>> rows;
  gzFile file = gzopen(path.c_str(), "rb");  // reads plain files as well
  if (file == nullptr) return rows;
  std::string text;
  std::array<char, 65536> buffer{};
  for (int n = gzread(file, buffer.data(), buffer.size()); n > 0;
       n = gzread(file, buffer.data(), buffer.size())) {
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  gzclose(file);
  bool header = true;
  for (const auto& line : split(text, '\n')) {
    if (!header && !trim(line).empty()) rows.push_back(split(trim(line), ','));
    header = false;
  }
  return rows;
}

}  // namespace muster::bench

int main(int argc, char** argv) {
  using namespace muster::bench;
  const std::pair<const char*, void (*)()> all[] = {{"decisions", decisions},
                                                    {"gang", gang},
                                                    {"fgd-openb", fgd_openb},
                                                    {"backfill-philly", backfill_philly},
                                                    {"backfill-learned", backfill_learned},
                                                    {"deep-backlog", deep_backlog},
                                                    {"copies", copies},
                                                    {"preempt-min", preempt_min},
                                                    {"scale", scale}};
  for (const auto& [name, run] : all) {
    bool wanted = argc == 1;
    for (int i = 1; i < argc; ++i) wanted |= std::strcmp(argv[i], name) == 0;
    if (wanted) run();
  }
  return 0;
}
