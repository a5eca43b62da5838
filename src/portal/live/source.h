/// What a topic shows to one user: rows of which a window is looked at, or one value. The same for
/// live subscriptions and for GETs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "portal/jobs/query.h"

namespace muster::portal {

struct ShownRow {
  std::uint64_t version = 0;  // another one: the row has changed
  std::string id;
  std::uint64_t place = 0;  // for Source::append
};

struct ShownPage {
  std::size_t total = 0;
  Window window;
  std::string extra;  // further members of the answer: `"counts":{…}` and the like
  std::vector<ShownRow> rows;
};

class Source {
 public:
  virtual ~Source() = default;
  /// Grows when what it shows may have changed.
  virtual std::uint64_t version() = 0;
  /// Sources that answer alike say the same here, so that what many tabs show is made once for all
  /// of them. Empty: nobody else is known to be shown this.
  [[nodiscard]] virtual std::string shared_as() const { return ""; }
  /// What it is about is there no more.
  virtual bool gone() { return false; }

  [[nodiscard]] virtual bool windowed() const = 0;
  /// Windowed ones. append() holds for rows of the page made last.
  virtual ShownPage page(Window window) {
    (void)window;
    return {};
  }
  virtual void append(std::string& out, const ShownRow& row) {
    (void)out;
    (void)row;
  }
  /// The others: the JSON text of the value, and what turns the one told before into this one, if
  /// that is shorter.
  virtual std::string value() { return "null"; }
  virtual std::optional<std::string> patch() { return std::nullopt; }
};
using SourcePtr = std::shared_ptr<Source>;

/// For a source that looks at one counter at some times and at another one at others: a step from one
/// to the other is a change, also where both happen to stand at the same number.
class Turns {
 public:
  std::uint64_t version(bool which, std::uint64_t counter) {
    if (which != which_) ++turns_;
    which_ = which;
    return turns_ << 48 | counter;
  }

 private:
  bool which_ = false;
  std::uint64_t turns_ = 0;
};

using ShownPtr = std::shared_ptr<const ShownPage>;

/// `"rv":"7","at":1731,` …: what both kinds of answers begin with.
std::string answer_head(std::uint64_t version, Millis now);
/// The whole answer of a GET, or of a first message with `"sub":N,` before it.
std::string snapshot_text(
    Source& source, Window window, Millis now, ShownPage* shown, std::string_view before);
/// What changed between two pages, without the brace and the `"sub":N,` that it begins with; empty:
/// nothing. `order` has ids of rows that are new, and [first, end) of the former order for those
/// that stay beside each other.
std::string difference_text(Source& source,
                            const ShownPage& old_page,
                            const ShownPage& page,
                            Millis now);

}  // namespace muster::portal
