#include "base/prometheus.h"

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/strings.h"

namespace muster::prometheus {
namespace {

/// As the format has it in a label's value.
std::string escaped(std::string_view text) {
  return replace_all(
      replace_all(replace_all(std::string(text), "\\", "\\\\"), "\"", "\\\""), "\n", "\\n");
}

}  // namespace

void Page::begin(std::string_view name, std::string_view type, std::string_view help) {
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void Page::value(std::string_view name, double number, Labels labels) {
  text_ += name;
  char before = '{';
  for (const auto& [label, text] : labels) {
    text_ += fmt::format("{}{}=\"{}\"", before, label, escaped(text));
    before = ',';
  }
  text_ += fmt::format("{} {}\n", labels.size() == 0 ? "" : "}", number);
}

void Page::one(std::string_view name, std::string_view type, std::string_view help, double number) {
  begin(name, type, help);
  value(name, number);
}

void Page::histogram(std::string_view name, std::string_view help, const Histogram& histogram) {
  begin(name, "histogram", help);
  const std::string bucket = fmt::format("{}_bucket", name);
  std::int64_t so_far = 0;
  for (std::size_t i = 0; i < Histogram::kBounds_s.size(); ++i) {
    so_far += histogram.in_bucket(i);
    value(
        bucket, static_cast<double>(so_far), {{"le", fmt::format("{}", Histogram::kBounds_s[i])}});
  }
  value(bucket, static_cast<double>(histogram.count()), {{"le", "+Inf"}});
  value(fmt::format("{}_sum", name), histogram.sum_s());
  value(fmt::format("{}_count", name), static_cast<double>(histogram.count()));
}

void add_process(Page& page) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  page.one("process_cpu_seconds_total",
           "counter",
           "CPU time that this process has used.",
           seconds(usage.ru_utime) + seconds(usage.ru_stime));
  std::ifstream statm("/proc/self/statm");
  double pages = 0, resident = 0;
  statm >> pages >> resident;
  page.one("process_resident_memory_bytes",
           "gauge",
           "Memory of this process that lies in RAM.",
           resident * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  std::error_code ignored;
  double files = 0;
  for (auto entry = std::filesystem::directory_iterator("/proc/self/fd", ignored);
       entry != std::filesystem::directory_iterator();
       entry.increment(ignored))
    ++files;
  page.one("process_open_fds", "gauge", "Open files and connections of this process.", files);
}

}  // namespace muster::prometheus
