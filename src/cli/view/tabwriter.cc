#include "cli/view/tabwriter.h"

#include <algorithm>

#include "base/strings.h"
#include "command/console.h"

namespace muster::cli {

using command::display_width;
namespace {

class Layout {
 public:
  Layout(std::string_view text, int padding) : padding_(padding) {
    const bool ends = !text.empty() && text.back() == '\n';
    for (const std::string& line : split(ends ? text.substr(0, text.size() - 1) : text, '\n')) {
      lines_.push_back(split(line, '\t'));
    }
    format(0, lines_.size());
    if (!ends && !out_.empty()) out_.pop_back();
  }

  std::string take() { return std::move(out_); }

 private:
  /// True when the line has a tab-terminated cell in the column.
  bool has(std::size_t line, std::size_t column) const { return column + 1 < lines_[line].size(); }

  /// Lays out [first, last) whose leading columns, as many as widths_ holds, are settled.
  void format(std::size_t first, std::size_t last) {
    const std::size_t column = widths_.size();
    for (std::size_t line = first; line < last; ++line) {
      if (!has(line, column)) continue;
      write(first, line);
      first = line;
      int width = 0;
      for (; line < last && has(line, column); ++line) {
        width = std::max(width, display_width(lines_[line][column]) + padding_);
      }
      widths_.push_back(width);
      format(first, line);
      widths_.pop_back();
      first = line;
      if (line == last) break;
    }
    write(first, last);
  }

  void write(std::size_t first, std::size_t last) {
    for (std::size_t line = first; line < last; ++line) {
      for (std::size_t i = 0; i < lines_[line].size(); ++i) {
        const std::string& cell = lines_[line][i];
        out_ += cell;
        if (i < widths_.size()) {
          out_.append(static_cast<std::size_t>(widths_[i] - display_width(cell)), ' ');
        }
      }
      out_ += '\n';
    }
  }

  int padding_;
  std::vector<std::vector<std::string>> lines_;
  std::vector<int> widths_;
  std::string out_;
};

/// The first `width` characters; escapes are not expected here (colour is added after fitting).
std::string shortened(std::string_view text, int width) {
  if (display_width(text) <= width) return std::string(text);
  std::string out;
  int used = 0;
  for (const char c : text) {
    const bool starts = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (starts && ++used >= width) break;
    out += c;
  }
  return out + "…";
}

}  // namespace

std::string tabulate(std::string_view text, int padding) { return Layout(text, padding).take(); }

namespace {

/// Headings that say the same in fewer letters, for narrow terminals.
constexpr std::pair<std::string_view, std::string_view> kShortHeadings[] = {
    {"GPU(Requested)", "GPU(Req)"},
    {"GPU(Allocated)", "GPU(Alloc)"},
    {"DURATION", "TIME"},
    {"NAMESPACE", "NS"}};

std::vector<int> widths_of(const std::vector<std::vector<std::string>>& cells) {
  std::vector<int> widths;
  for (const auto& row : cells) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i >= widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], display_width(row[i]));
    }
  }
  return widths;
}

int line_width(const std::vector<int>& widths) {
  int total = widths.empty() ? 0 : 2 * static_cast<int>(widths.size() - 1);
  for (const int width : widths) total += width;
  return total;
}

}  // namespace

void Rows::fit(int columns) {
  if (columns <= 0 || shrinkable.empty() || cells.empty()) return;
  if (line_width(widths_of(cells)) <= columns) return;
  for (std::string& heading : cells[0]) {
    for (const auto& [from, to] : kShortHeadings) {
      if (heading == from) heading = to;
    }
  }
  std::vector<int> widths = widths_of(cells);
  constexpr int kNarrowest = 8;
  for (int total = line_width(widths); total > columns; --total) {
    int* widest = nullptr;
    for (const std::size_t column : shrinkable) {
      if (column < widths.size() && (widest == nullptr || widths[column] > *widest))
        widest = &widths[column];
    }
    if (widest == nullptr || *widest <= kNarrowest) break;
    --*widest;
  }
  for (auto& row : cells) {
    for (const std::size_t column : shrinkable) {
      if (column < row.size()) row[column] = shortened(row[column], widths[column]);
    }
  }
}

std::string Rows::text() const {
  std::string out;
  for (const auto& row : cells) out += join(row, "\t") + "\n";
  return tabulate(out);
}

}  // namespace muster::cli
