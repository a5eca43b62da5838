#include "base/prometheus.h"

#include <gtest/gtest.h>

namespace muster::prometheus {
namespace {

TEST(Prometheus, LabelsOfAnyTextStayOnOneLine) {
  Page page;
  page.begin("waiting", "gauge", "Gangs that wait.");
  page.value("waiting", 3, {{"queue", "a \"b\" \\ c\nd"}, {"resource", "cpu"}});
  page.value("waiting", 0.5);
  EXPECT_EQ(page.take(),
            "# HELP waiting Gangs that wait.\n# TYPE waiting gauge\n"
            "waiting{queue=\"a \\\"b\\\" \\\\ c\\nd\",resource=\"cpu\"} 3\nwaiting 0.5\n");
}

TEST(Prometheus, BucketsCountWhatIsBelowThem) {
  Histogram histogram;
  histogram.add(std::chrono::milliseconds(2));
  histogram.add(std::chrono::minutes(1));
  Page page;
  page.histogram("took_seconds", "Of a pass.", histogram);
  const std::string text = page.take();
  EXPECT_NE(text.find("took_seconds_bucket{le=\"0.001\"} 0\n"), std::string::npos) << text;
  EXPECT_NE(text.find("took_seconds_bucket{le=\"0.005\"} 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("took_seconds_bucket{le=\"30\"} 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("took_seconds_bucket{le=\"+Inf\"} 2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("took_seconds_sum 60.002\ntook_seconds_count 2\n"), std::string::npos)
      << text;
}

TEST(Prometheus, TheProcessHasMemory) {
  Page page;
  add_process(page);
  EXPECT_NE(page.take().find("\nprocess_resident_memory_bytes "), std::string::npos);
}

}  // namespace
}  // namespace muster::prometheus
