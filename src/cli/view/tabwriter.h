/// Go's text/tabwriter with minimum width 0 and blank fill: the layout of every table that arena
/// prints.
///
/// Cells end with a tab; what follows the last tab of a line belongs to no column. A column is as
/// wide as its widest cell within a run of consecutive lines that have the column, plus the
/// padding, so a line without tabs ends every run:
///
///   NAME\tSTATUS        NAME    STATUS
///   medium\tRUNNING     medium  RUNNING
///   ------              ------
///   a\tb                a  b
///
/// Width counts UTF-8 characters; colour escapes (ESC [ … m) count nothing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::cli {

std::string tabulate(std::string_view text, int padding = 2);

/// Rows of cells; tabulate() joins them. `fit` shortens long headings of the first row, then the
/// cells of shrinkable columns, widest first, until the lines are no longer than `columns` (0: no
/// limit). A shortened cell ends in "…".
struct Rows {
  std::vector<std::vector<std::string>> cells;
  std::vector<std::size_t> shrinkable;

  void add(std::vector<std::string> row) { cells.push_back(std::move(row)); }
  void fit(int columns);
  [[nodiscard]] std::string text() const;
};

}  // namespace muster::cli
