#include "command/console.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "base/strings.h"

namespace muster::command {
namespace {

const std::chrono::steady_clock::time_point kStart = std::chrono::steady_clock::now();

Duration since_start() {
  return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - kStart);
}

struct LevelName {
  std::string_view word;
  std::string_view shown;
  int rank;
};
constexpr std::array kLevels{LevelName{"debug", "DEBU", 0},
                             LevelName{"info", "INFO", 1},
                             LevelName{"warn", "WARN", 2},
                             LevelName{"warning", "WARN", 2},
                             LevelName{"error", "ERRO", 3},
                             LevelName{"fatal", "FATA", 4}};

std::string_view escape_of(Colour colour) {
  switch (colour) {
    case Colour::kNone:
      return "";
    case Colour::kRed:
      return "\x1b[31m";
    case Colour::kGreen:
      return "\x1b[32m";
    case Colour::kYellow:
      return "\x1b[33m";
    case Colour::kBlue:
      return "\x1b[34m";
    case Colour::kCyan:
      return "\x1b[36m";
    case Colour::kGrey:
      return "\x1b[90m";
    case Colour::kBold:
      return "\x1b[1m";
  }
  return "";
}

constexpr std::array<std::pair<std::string_view, Colour>, 10> kStatusColours{{
    {"RUNNING", Colour::kGreen},
    {"SUCCEEDED", Colour::kCyan},
    {"FAILED", Colour::kRed},
    {"PENDING", Colour::kYellow},
    {"QUEUING", Colour::kYellow},
    {"SUSPENDED", Colour::kGrey},
    {"ready", Colour::kGreen},
    {"notReady", Colour::kRed},
    {"Open", Colour::kGreen},
    {"Closed", Colour::kRed},
}};

/// write(2) until all is gone; a closed pipe ends the program quietly, as SIGPIPE would.
void write_all(std::FILE* file, std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file) != text.size()) std::_Exit(1);
}

}  // namespace

int display_width(std::string_view text) {
  int width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b' && i + 1 < text.size() && text[i + 1] == '[') {
      while (i < text.size() && text[i] != 'm') ++i;
      continue;
    }
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) ++width;
  }
  return width;
}

Console Console::standard() {
  Console console;
  console.captured_ = false;
  console.out_terminal_ = ::isatty(STDOUT_FILENO) != 0;
  console.err_terminal_ = ::isatty(STDERR_FILENO) != 0;
  const char* no_colour = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool dumb = term == nullptr || std::string_view(term) == "dumb";
  console.colours_ = console.out_terminal_ && (no_colour == nullptr || *no_colour == '\0') && !dumb;
  if (console.out_terminal_) {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) console.columns_ = size.ws_col;
  }
  console.elapsed = &since_start;
  return console;
}

void Console::out(std::string_view text) {
  if (captured_) {
    captured_out += text;
    return;
  }
  if (progress_shown_) progress("");
  write_all(stdout, text);
  if (out_terminal_) std::fflush(stdout);
}

void Console::err(std::string_view text) {
  if (captured_) {
    captured_err += text;
    return;
  }
  if (progress_shown_) progress("");
  std::fflush(stdout);
  write_all(stderr, text);
}

void Console::flush() {
  if (!captured_) std::fflush(stdout);
}

void Console::log(std::string_view level, std::string_view text) {
  for (const LevelName& name : kLevels) {
    if (name.word != level) continue;
    if (name.rank < level_) return;
    const std::int64_t seconds = elapsed == nullptr ? 0 : elapsed().count() / 1'000'000;
    std::string word(name.shown);
    if (colours_ && err_terminal_) {
      word = paint(name.rank >= 3   ? Colour::kRed
                   : name.rank == 2 ? Colour::kYellow
                                    : Colour::kCyan,
                   word);
    }
    err(fmt::format("{}[{:04}] {}\n", word, seconds, text));
    return;
  }
}

bool Console::set_level(std::string_view word) {
  for (const LevelName& name : kLevels) {
    if (name.word == word && name.rank <= 3) {
      level_ = name.rank;
      return true;
    }
  }
  return false;
}

std::string Console::paint(Colour colour, std::string_view text) const {
  if (!colours_ || colour == Colour::kNone) return std::string(text);
  return fmt::format("{}{}\x1b[0m", escape_of(colour), text);
}

std::string Console::paint_status(std::string_view word) const {
  for (const auto& [name, colour] : kStatusColours) {
    if (word == name) return paint(colour, word);
  }
  return std::string(word);
}

std::string Console::paint_table(std::string_view table) const {
  if (!colours_) return std::string(table);
  std::string out;
  std::size_t at = 0;
  while (at < table.size()) {
    const std::size_t end = std::min(table.find_first_of(" \n", at), table.size());
    out += paint_status(table.substr(at, end - at));
    if (end < table.size()) out += table[end];
    at = end + 1;
  }
  return out;
}

void Console::progress(std::string_view text) {
  if (captured_ || !err_terminal_) return;
  progress_shown_ = false;
  const std::string line = fmt::format("\r\x1b[K{}", text);
  std::fwrite(line.data(), 1, line.size(), stderr);
  progress_shown_ = !text.empty();
}

}  // namespace muster::command
