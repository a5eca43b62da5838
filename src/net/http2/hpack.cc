#include "net/http2/hpack.h"

#include <algorithm>
#include <array>

namespace muster::net {
namespace {

/// RFC 7541, appendix A.
const std::array<HeaderField, 61> kFixed{{
    {":authority", ""},
    {":method", "GET"},
    {":method", "POST"},
    {":path", "/"},
    {":path", "/index.html"},
    {":scheme", "http"},
    {":scheme", "https"},
    {":status", "200"},
    {":status", "204"},
    {":status", "206"},
    {":status", "304"},
    {":status", "400"},
    {":status", "404"},
    {":status", "500"},
    {"accept-charset", ""},
    {"accept-encoding", "gzip, deflate"},
    {"accept-language", ""},
    {"accept-ranges", ""},
    {"accept", ""},
    {"access-control-allow-origin", ""},
    {"age", ""},
    {"allow", ""},
    {"authorization", ""},
    {"cache-control", ""},
    {"content-disposition", ""},
    {"content-encoding", ""},
    {"content-language", ""},
    {"content-length", ""},
    {"content-location", ""},
    {"content-range", ""},
    {"content-type", ""},
    {"cookie", ""},
    {"date", ""},
    {"etag", ""},
    {"expect", ""},
    {"expires", ""},
    {"from", ""},
    {"host", ""},
    {"if-match", ""},
    {"if-modified-since", ""},
    {"if-none-match", ""},
    {"if-range", ""},
    {"if-unmodified-since", ""},
    {"last-modified", ""},
    {"link", ""},
    {"location", ""},
    {"max-forwards", ""},
    {"proxy-authenticate", ""},
    {"proxy-authorization", ""},
    {"range", ""},
    {"referer", ""},
    {"refresh", ""},
    {"retry-after", ""},
    {"server", ""},
    {"set-cookie", ""},
    {"strict-transport-security", ""},
    {"transfer-encoding", ""},
    {"user-agent", ""},
    {"vary", ""},
    {"via", ""},
    {"www-authenticate", ""},
}};

/// RFC 7541, appendix B: the length of each byte's code. The code is canonical (shorter first, then
/// by byte), so the lengths say it all; the end-of-string symbol is the last code of 30 bits and
/// must not occur.
constexpr std::array<std::uint8_t, 256> kCodeBits{
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6,  10, 10, 12, 13, 6,  8,  11, 10, 10, 8,  11, 8,  6,  6,  6,
    5,  5,  5,  6,  6,  6,  6,  6,  6,  6,  7,  8,  15, 6,  12, 10, 13, 6,  7,  7,  7,  7,  7,  7,
    7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  8,  7,  8,  13, 19, 13, 14, 6,
    15, 5,  6,  5,  6,  5,  6,  6,  6,  5,  7,  7,  6,  6,  6,  5,  6,  7,  6,  5,  5,  6,  7,  7,
    7,  7,  7,  15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26};
constexpr std::size_t kBitsMax = 30;

/// The code as a machine that takes four bits a step. A state is an inner node of the code's tree;
/// as no code is shorter than five bits, a step ends at most one byte. An answer of the API server
/// brings a new identifier of 36 characters, so this is not rare.
class HuffmanMachine {
 public:
  struct Step {
    std::uint16_t next = 0;
    std::uint8_t byte = 0;
    bool emits = false;
    bool fails = false;
  };

  HuffmanMachine() {
    std::uint32_t code = 0;
    for (std::size_t bits = 1; bits <= kBitsMax; ++bits) {
      code <<= 1;
      for (std::size_t byte = 0; byte < 256; ++byte) {
        if (kCodeBits[byte] == bits) add(code++, bits, static_cast<std::uint8_t>(byte));
      }
    }
    steps_.resize(nodes_.size());
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      for (std::uint32_t nibble = 0; nibble < 16; ++nibble)
        steps_[node][nibble] = walk(node, nibble);
    }
    // What is left at the end is padding: fewer than eight ones.
    ends_.resize(nodes_.size());
    int node = 0;
    for (int ones = 0; ones < 8 && node >= 0;
         ++ones, node = nodes_[static_cast<std::size_t>(node)][1])
      ends_[static_cast<std::size_t>(node)] = true;
  }

  [[nodiscard]] const Step& step(std::uint16_t state, unsigned nibble) const {
    return steps_[state][nibble];
  }
  [[nodiscard]] bool may_end(std::uint16_t state) const { return ends_[state]; }

 private:
  // A child: another node, nothing (the end-of-string symbol, which must not occur), or -2 - byte.
  static constexpr int kNone = -1;

  void add(std::uint32_t code, std::size_t bits, std::uint8_t byte) {
    std::size_t node = 0;
    for (std::size_t left = bits; left-- > 0;) {
      const std::size_t side = code >> left & 1U;
      if (left == 0) {
        nodes_[node][side] = -2 - byte;
        return;
      }
      if (nodes_[node][side] == kNone) {
        nodes_[node][side] = static_cast<int>(nodes_.size());
        nodes_.push_back({kNone, kNone});
      }
      node = static_cast<std::size_t>(nodes_[node][side]);
    }
  }

  [[nodiscard]] Step walk(std::size_t node, std::uint32_t nibble) const {
    Step step;
    for (int bit = 3; bit >= 0; --bit) {
      const int child = nodes_[node][nibble >> bit & 1U];
      if (child == kNone) {
        step.fails = true;
        return step;
      }
      node = child < 0 ? 0 : static_cast<std::size_t>(child);
      if (child < 0) {
        step.emits = true;
        step.byte = static_cast<std::uint8_t>(-2 - child);
      }
    }
    step.next = static_cast<std::uint16_t>(node);
    return step;
  }

  std::vector<std::array<int, 2>> nodes_{{kNone, kNone}};
  std::vector<std::array<Step, 16>> steps_;
  std::vector<bool> ends_;
};

/// Integers fill the low bits of a byte and go on in the following ones, seven bits each.
void put_integer(std::string& out, unsigned char flags, int prefix_bits, std::size_t value) {
  const std::size_t full = (1U << prefix_bits) - 1;
  if (value < full) {
    out += static_cast<char>(flags | value);
    return;
  }
  out += static_cast<char>(flags | full);
  for (value -= full; value >= 128; value >>= 7) out += static_cast<char>(0x80 | (value & 0x7f));
  out += static_cast<char>(value);
}

std::optional<std::size_t> take_integer(std::string_view& in, int prefix_bits) {
  if (in.empty()) return std::nullopt;
  const std::size_t full = (1U << prefix_bits) - 1;
  std::size_t value = static_cast<unsigned char>(in.front()) & full;
  in.remove_prefix(1);
  if (value < full) return value;
  for (int shift = 0; shift <= 28; shift += 7) {
    if (in.empty()) return std::nullopt;
    const auto byte = static_cast<unsigned char>(in.front());
    in.remove_prefix(1);
    value += static_cast<std::size_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  return std::nullopt;
}

void put_string(std::string& out, std::string_view text) {
  put_integer(out, 0, 7, text.size());
  out.append(text);
}

std::optional<std::string> take_string(std::string_view& in) {
  if (in.empty()) return std::nullopt;
  const bool coded = (static_cast<unsigned char>(in.front()) & 0x80) != 0;
  const auto size = take_integer(in, 7);
  if (!size || *size > in.size()) return std::nullopt;
  const auto bytes = in.substr(0, *size);
  in.remove_prefix(*size);
  if (coded) return huffman_decode(bytes);
  return std::string(bytes);
}

}  // namespace

std::optional<std::string> huffman_decode(std::string_view bytes) {
  static const HuffmanMachine machine;
  std::string out;
  out.reserve(bytes.size() * 8 / 5);
  std::uint16_t state = 0;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    for (const unsigned nibble : {unsigned{byte} >> 4U, unsigned{byte} & 15U}) {
      const auto& step = machine.step(state, nibble);
      if (step.fails) return std::nullopt;
      if (step.emits) out += static_cast<char>(step.byte);
      state = step.next;
    }
  }
  if (!machine.may_end(state)) return std::nullopt;
  return out;
}

void HpackTable::add(HeaderField field) {
  bytes_ += size_of(field);
  fields_.push_front(std::move(field));
  evict();
}

void HpackTable::resize(std::size_t bytes_max) {
  bytes_max_ = bytes_max;
  evict();
}

void HpackTable::evict() {
  while (bytes_ > bytes_max_) {
    bytes_ -= size_of(fields_.back());
    fields_.pop_back();
  }
}

const HeaderField* HpackTable::find(std::size_t index) const {
  if (index == 0) return nullptr;
  if (index <= kFixed.size()) return &kFixed[index - 1];
  index -= kFixed.size() + 1;
  return index < fields_.size() ? &fields_[index] : nullptr;
}

HpackTable::Match HpackTable::match(std::string_view name, std::string_view value) const {
  Match match;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    if (fields_[i].first != name) continue;
    if (match.name == 0) match.name = kFixed.size() + 1 + i;
    if (fields_[i].second != value) continue;
    match.field = kFixed.size() + 1 + i;
    return match;
  }
  for (std::size_t i = 0; i < kFixed.size(); ++i) {
    if (kFixed[i].first != name) continue;
    if (match.name == 0) match.name = i + 1;
    if (kFixed[i].second != value) continue;
    match.field = i + 1;
    return match;
  }
  return match;
}

void HpackEncoder::encode(std::string& out,
                          std::string_view name,
                          std::string_view value,
                          bool remember) {
  if (announce_) {
    put_integer(out, 0x20, 5, table_.bytes_max());
    announce_ = false;
    ++version_;
  }
  const auto match = table_.match(name, value);
  if (match.field != 0) {
    put_integer(out, 0x80, 7, match.field);
    return;
  }
  // One field must not push everything else out.
  remember = remember && name.size() + value.size() + 32 <= table_.bytes_max() / 2;
  if (remember)
    put_integer(out, 0x40, 6, match.name);
  else
    put_integer(out, 0x00, 4, match.name);
  if (match.name == 0) put_string(out, name);
  put_string(out, value);
  if (!remember) return;
  table_.add({std::string(name), std::string(value)});
  ++version_;
}

void HpackEncoder::limit(std::size_t bytes_max) {
  bytes_max = std::min<std::size_t>(bytes_max, 4096);
  if (bytes_max == table_.bytes_max()) return;
  table_.resize(bytes_max);
  announce_ = true;
  ++version_;
}

std::optional<std::vector<HeaderField>> HpackDecoder::decode(std::string_view block) {
  std::vector<HeaderField> fields;
  const bool whole = decode(block, [&](std::string_view name, std::string_view value) {
    fields.emplace_back(name, value);
  });
  if (!whole) return std::nullopt;
  return fields;
}

bool HpackDecoder::decode(std::string_view block, const Each& each) {
  // What we promised in our settings, by not naming another.
  constexpr std::size_t kTableBytesMax = 4096;
  while (!block.empty()) {
    const auto kind = static_cast<unsigned char>(block.front());
    if ((kind & 0x80) != 0) {
      const auto index = take_integer(block, 7);
      const auto* field = index ? table_.find(*index) : nullptr;
      if (field == nullptr) return false;
      each(field->first, field->second);
      continue;
    }
    if ((kind & 0xe0) == 0x20) {
      const auto bytes = take_integer(block, 5);
      if (!bytes || *bytes > kTableBytesMax) return false;
      table_.resize(*bytes);
      continue;
    }
    const bool remember = (kind & 0x40) != 0;
    const auto index = take_integer(block, remember ? 6 : 4);
    if (!index) return false;
    std::optional<std::string> name;
    if (*index == 0) {
      name = take_string(block);
    } else if (const auto* field = table_.find(*index)) {
      name = field->first;
    }
    if (!name) return false;
    auto value = take_string(block);
    if (!value) return false;
    each(*name, *value);
    if (remember) table_.add({std::move(*name), std::move(*value)});
  }
  return true;
}

}  // namespace muster::net
