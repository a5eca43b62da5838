/// Where a command writes: standard output and error, or strings in a test.
///
/// Log lines have logrus' terminal form, `INFO[0000] text`, on standard error. Standard output is
/// flushed before each of them, so that `2>&1` keeps the order in which things happened.
#pragma once

#include <string>
#include <string_view>

#include "base/time.h"

namespace muster::command {

enum class Colour { kNone, kRed, kGreen, kYellow, kBlue, kCyan, kGrey, kBold };

/// Characters of `text` on a terminal, colour escapes aside.
int display_width(std::string_view text);

class Console {
 public:
  /// The process' own streams: terminals are recognised, NO_COLOR and TERM=dumb honoured.
  static Console standard();
  /// Collects into strings; no terminal.
  static Console captured() { return Console(); }

  void out(std::string_view text);
  void err(std::string_view text);
  /// Pushes buffered output out, for streams that people watch.
  void flush();
  /// `level` one of debug, info, warning, error; below the threshold nothing is written.
  void log(std::string_view level, std::string_view text);
  void info(std::string_view text) { log("info", text); }
  void warn(std::string_view text) { log("warning", text); }
  void error(std::string_view text) { log("error", text); }
  void debug(std::string_view text) { log("debug", text); }
  /// False for a word that is none of debug, info, warn, error.
  bool set_level(std::string_view word);

  [[nodiscard]] bool terminal() const { return out_terminal_; }
  /// Columns of the terminal; 0 when output is not one.
  [[nodiscard]] int columns() const { return columns_; }
  [[nodiscard]] bool colours() const { return colours_; }
  /// The text in the colour, or as it is when colours are off.
  [[nodiscard]] std::string paint(Colour colour, std::string_view text) const;
  /// As RUNNING green, FAILED red and so on; blanks around it stay.
  [[nodiscard]] std::string paint_status(std::string_view word) const;
  /// Colours the status words of a finished table.
  [[nodiscard]] std::string paint_table(std::string_view table) const;

  /// One line on a terminal that the next call replaces; nothing elsewhere. Empty clears it.
  void progress(std::string_view text);

  /// What a captured console has seen.
  std::string captured_out, captured_err;
  /// Seconds since the start of the program, for log lines. A test leaves it at zero.
  Duration (*elapsed)() = nullptr;

 private:
  bool captured_ = true;
  bool out_terminal_ = false, err_terminal_ = false, colours_ = false, progress_shown_ = false;
  int columns_ = 0;
  int level_ = 1;
};

}  // namespace muster::command
