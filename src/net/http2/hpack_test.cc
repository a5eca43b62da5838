#include "net/http2/hpack.h"

#include <gtest/gtest.h>

namespace muster::net {
namespace {

std::string bytes(std::string_view hex) {
  std::string out;
  std::string digits;
  for (const char c : hex) {
    if (c == ' ') continue;
    digits += c;
    if (digits.size() < 2) continue;
    out += static_cast<char>(std::stoi(digits, nullptr, 16));
    digits.clear();
  }
  return out;
}

using Fields = std::vector<HeaderField>;

// RFC 7541, appendix C.4: requests with Huffman-coded strings; the second one leans on the table
// that the first left.
TEST(Hpack, RequestsOfTheStandardsAppendix) {
  HpackDecoder decoder;
  EXPECT_EQ(decoder.decode(bytes("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff")),
            (Fields{{":method", "GET"},
                    {":scheme", "http"},
                    {":path", "/"},
                    {":authority", "www.example.com"}}));
  EXPECT_EQ(decoder.decode(bytes("8286 84be 5886 a8eb 1064 9cbf")),
            (Fields{{":method", "GET"},
                    {":scheme", "http"},
                    {":path", "/"},
                    {":authority", "www.example.com"},
                    {"cache-control", "no-cache"}}));
}

// Appendix C.6.1.
TEST(Hpack, ResponseOfTheStandardsAppendix) {
  HpackDecoder decoder;
  const auto fields = decoder.decode(bytes(
      "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3"));
  EXPECT_EQ(fields,
            (Fields{{":status", "302"},
                    {"cache-control", "private"},
                    {"date", "Mon, 21 Oct 2013 20:13:21 GMT"},
                    {"location", "https://www.example.com"}}));
}

TEST(Hpack, WhatIsEncodedIsDecodedAndRepeatsAreShort) {
  HpackEncoder encoder;
  HpackDecoder decoder;
  const Fields fields{{":method", "PATCH"},
                      {":path", "/api/v1/namespaces/ns/pods/p"},
                      {"authorization", "Bearer " + std::string(900, 't')},
                      {"content-type", "application/json"},
                      {"x-long", std::string(3000, 'x')},
                      {"empty", ""}};
  std::size_t first = 0;
  for (int round = 0; round < 300; ++round) {
    std::string block;
    for (const auto& [name, value] : fields) encoder.encode(block, name, value, name != ":path");
    ASSERT_EQ(decoder.decode(block), fields) << "round " << round;
    if (round == 0) first = block.size();
    if (round == 1) {
      // The token is known by now; the long one is never remembered.
      EXPECT_LT(block.size(), first - 900);
    }
    if (round == 5) encoder.limit(128);  // the peer keeps less from here on
  }
}

TEST(Hpack, BrokenBlocksAreRefused) {
  for (const char* hex : {"80", "ff", "bf", "41", "418c f1e3", "7f ffff ffff ffff", "3fe2 ff7f"}) {
    HpackDecoder decoder;
    EXPECT_FALSE(decoder.decode(bytes(hex))) << hex;
  }
  // The end-of-string symbol, or padding that is too long.
  EXPECT_FALSE(huffman_decode(bytes("ffff ffff")));
  EXPECT_FALSE(huffman_decode(bytes("f1e3 c2e5 f23a 6ba0 ab90 f400")));
}

}  // namespace
}  // namespace muster::net
