// Check 45 of the acceptance list: random messages, written by this codec, are to protobuf's own
// reader what they are to ours.
#include "agent/image/protobuf.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <random>
#include <vector>

namespace muster::agent::image {
namespace {

/// A message as protoc prints it, and its bytes.
struct Made {
  MessageWriter message;
  std::string text;
};

/// protoc guesses what bytes are. This is the beginning of no message: wire type 7 does not exist.
constexpr char kNoMessage = '\x07';

std::string escaped(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || c == '\'')
      out += fmt::format("\\{}", c);
    else if (c == '\n')
      out += "\\n";
    else if (c == '\r')
      out += "\\r";
    else if (c == '\t')
      out += "\\t";
    else if (code < 0x20 || code >= 0x7f)
      out += fmt::format("\\{:03o}", code);
    else
      out += c;
  }
  return out;
}

class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed) {}

  Made message(int depth) {
    Made out;
    const auto indent = std::string(static_cast<std::size_t>(depth) * 2, ' ');
    for (auto fields = below(6) + 1; fields > 0; --fields) {
      const int field =
          static_cast<int>(below(4) == 0 ? below((1U << 29) - 20000) + 20000 : below(200) + 1);
      switch (below(depth < 5 ? 4 : 3)) {
        case 0: {
          const auto value = number();
          out.message.number(field, value);
          if (value != 0) out.text += fmt::format("{}{}: {}\n", indent, field, value);
          break;
        }
        case 1: {
          const auto value = number();
          out.message.element(field, value);
          out.text += fmt::format("{}{}: {}\n", indent, field, value);
          break;
        }
        case 2: {
          std::string value(1, kNoMessage);
          for (auto left = below(300); left > 0; --left) value += static_cast<char>(below(256));
          out.message.text(field, value);
          out.text += fmt::format("{}{}: \"{}\"\n", indent, field, escaped(value));
          break;
        }
        default: {
          const auto inner = message(depth + 1);
          out.message.message(field, inner.message);
          out.text += inner.text.empty()
                          ? fmt::format("{}{}: \"\"\n", indent, field)
                          : fmt::format("{0}{1} {{\n{2}{0}}}\n", indent, field, inner.text);
        }
      }
    }
    return out;
  }

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  std::uint64_t number() { return random_() >> below(64); }

  std::mt19937_64 random_;
};

/// The same text by our own reader.
std::string shown(std::string_view bytes, int depth) {
  std::string out;
  const auto indent = std::string(static_cast<std::size_t>(depth) * 2, ' ');
  EXPECT_TRUE(read_message(bytes, [&](const MessageField& field) {
    if (!field.is_bytes) {
      out += fmt::format("{}{}: {}\n", indent, field.number, field.value);
    } else if (field.bytes.empty() || field.bytes.front() == kNoMessage) {
      out += fmt::format("{}{}: \"{}\"\n", indent, field.number, escaped(field.bytes));
    } else {
      out +=
          fmt::format("{0}{1} {{\n{2}{0}}}\n", indent, field.number, shown(field.bytes, depth + 1));
    }
  }));
  return out;
}

std::string by_protoc(const std::string& bytes) {
  char name[] = "/tmp/muster-protoc-XXXXXX";
  const int fd = mkstemp(name);
  if (fd < 0 || write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    return "not written";
  close(fd);
  std::string out;
  auto* pipe = popen(fmt::format("protoc --decode_raw < {} 2>&1", name).c_str(), "r");
  char buffer[4096];
  for (std::size_t got = 0; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;)
    out.append(buffer, got);
  pclose(pipe);
  unlink(name);
  return out;
}

TEST(Protobuf, RandomMessagesAreWhatProtobufItselfReads) {
  const bool there = std::system("command -v protoc >/dev/null 2>&1") == 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Maker maker(seed);
    MessageWriter whole;
    std::string text;
    for (int i = 0; i < 20; ++i) {
      const auto one = maker.message(1);
      if (one.text.empty()) continue;
      whole.message(1, one.message);
      text += fmt::format("1 {{\n{}}}\n", one.text);
    }
    ASSERT_EQ(shown(whole.bytes(), 0), text);
    if (there) {
      ASSERT_EQ(by_protoc(whole.bytes()), text);
    }
  }
  if (!there) GTEST_SKIP() << "protoc is not installed; read by our own reader alone";
}

/// Whatever is cut off, it is no message or a shorter one, never something else.
TEST(Protobuf, WhatIsCutOffIsNoMessage) {
  Maker maker(7);
  for (int round = 0; round < 50; ++round) {
    MessageWriter whole;
    whole.message(1, maker.message(1).message);
    const auto& bytes = whole.bytes();
    for (std::size_t size = 1; size < bytes.size(); ++size)
      EXPECT_FALSE(
          read_message(std::string_view(bytes).substr(0, size), [](const MessageField&) {}));
  }
}

}  // namespace
}  // namespace muster::agent::image
