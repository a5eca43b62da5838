/// Some members of a JSON value and nothing else, written as
/// `metadata(name,labels(app)),status(phase)`.
///
/// A long list of which little is read costs as much to send and to parse as if all of it were
/// read. The API server leaves out what the `fields` parameter of a list does not name; for servers
/// that do not know the parameter the client cuts the answer's text before it parses it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"

namespace muster::json {

/// A member to keep: without children the whole value. "*" stands for every name that is not listed
/// itself; arrays are looked through.
struct Pick {
  std::string name;
  std::vector<Pick> children = {};
};
using Picks = std::vector<Pick>;

/// One piece of memory for the values parsed into it: they are never freed one by one, so it suits
/// answers that are read and thrown away as a whole. Outlives its values.
class Block {
 public:
  Block();
  ~Block();
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  Result<Value> parse(std::string_view text);

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

/// `a,b(c,d(*(e)))`. Names hold anything but "(", ")" and ",".
Result<Picks> parse_picks(std::string_view text);
std::string picks_text(const Picks& picks);

/// Appends the value's JSON text with only these members.
void append_picked(const Value& value, const Picks& picks, std::string& out);
/// The text with only these members. The text must be JSON; where it is not, the result is not
/// either.
std::string pick_from_text(std::string_view text, const Picks& picks);

}  // namespace muster::json
