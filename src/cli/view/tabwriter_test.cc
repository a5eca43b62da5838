#include "cli/view/tabwriter.h"

#include <gtest/gtest.h>

namespace muster::cli {
namespace {

struct Case {
  const char* name;
  std::string in, want;
};

TEST(Tabwriter, LaysOutAsGoDoes) {
  const Case cases[] = {
      {"empty", "", ""},
      {"no tabs", "hello\nworld\n", "hello\nworld\n"},
      {"two columns", "NAME\tSTATUS\nmedium\tRUNNING\n", "NAME    STATUS\nmedium  RUNNING\n"},
      {"a line without tabs ends the run",
       "a\tb\n------\nlonger\tc\n",
       "a  b\n------\nlonger  c\n"},
      {"blank line ends the run", "aaaa\tb\n\na\tb\n", "aaaa  b\n\na  b\n"},
      {"the last cell is in no column",
       "a\tlong last cell\tx\nb\tc\n",
       "a  long last cell  x\nb  c\n"},
      {"trailing tab pads the cell", "a\tb\t\nccc\tddd\t\n", "a    b    \nccc  ddd  \n"},
      {"empty cells keep their column", "\tb\n\tc\n", "  b\n  c\n"},
      {"inner column of a shorter run",
       "a\tb\tc\nd\te\nf\tgggg\th\n",
       "a  b  c\nd  e\nf  gggg  h\n"},
      {"characters, not bytes", "é\tx\nab\ty\n", "é   x\nab  y\n"},
      {"no final newline", "a\tb\ncc\td", "a   b\ncc  d"},
      {"colour has no width",
       "\x1b[31mFAILED\x1b[0m\tx\nab\ty\n",
       "\x1b[31mFAILED\x1b[0m  x\nab      y\n"},
  };
  for (const Case& c : cases) EXPECT_EQ(tabulate(c.in), c.want) << c.name;
}

TEST(Tabwriter, RowsShrinkTheWidestColumnToFit) {
  Rows rows;
  rows.shrinkable = {0, 2};
  rows.add({"NAME", "STATUS", "INSTANCE"});
  rows.add({"a-very-long-job-name-indeed", "RUNNING", "a-very-long-job-name-indeed-worker-0"});
  rows.fit(40);
  EXPECT_EQ(rows.text(),
            "NAME            STATUS   INSTANCE\na-very-long-j…  RUNNING  a-very-long-jo…\n");
  rows.fit(0);
  EXPECT_EQ(rows.cells[1][1], "RUNNING");
}

}  // namespace
}  // namespace muster::cli
