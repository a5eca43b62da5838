#include "kube/schema/protobuf.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "lib/recorded.h"

namespace muster::kube {
namespace {

/// Empty values and nulls mean the same as absent ones on both sides.
json::Value without_empty(const json::Value& value) {
  if (value.is_object()) {
    json::Object out;
    for (const auto& member : value.get_object()) {
      json::Value inner = without_empty(member.value());
      if (!json::is_empty(inner)) out[member.key()] = std::move(inner);
    }
    return out;
  }
  if (value.is_array()) {
    json::Array out;
    for (const json::Value& item : value.get_array()) out.push_back(without_empty(item));
    return out;
  }
  return value;
}

TEST(Protobuf, TwentyRecordedObjectsEqualTheirJson) {
  const auto pairs = recorded::read_json("protobuf-json-pairs_v1.32.4.json");
  int compared = 0;
  for (const json::Value& pair : json::as_array(pairs)) {
    std::string bytes;
    for (const auto& member : json::as_object(pair)) {
      if (!member.value().is_string()) continue;
      const auto decoded = base64_decode(json::as_string(member.value()));
      if (decoded && decoded->starts_with("k8s")) bytes = *decoded;
    }
    ASSERT_FALSE(bytes.empty()) << json::dump(json::at(pair, "path"));
    const auto object = decode_protobuf(Schema::builtin(), bytes);
    ASSERT_TRUE(object) << json::dump(json::at(pair, "path")) << ": " << object.error().message;
    const json::Value want = without_empty(json::at(pair, "json"));
    const json::Value have = without_empty(*object);
    EXPECT_TRUE(json::equal(have, want))
        << "have " << json::dump(have) << "\nwant " << json::dump(want);
    ++compared;
  }
  EXPECT_EQ(compared, 20);
}

TEST(Protobuf, RecordedClientBodiesDecode) {
  int decoded = 0;
  for (const std::string file : {"server-v1.32.4_client-go-v0.32.jsonl",
                                 "server-v1.37.0_client-go-v0.37.jsonl",
                                 "server-v1.37.0_kubectl-v1.37.jsonl"}) {
    std::istringstream lines(recorded::read(file));
    for (std::string line; std::getline(lines, line);) {
      const auto entry = json::parse(line);
      if (!entry) continue;
      for (const json::Value& http : json::array_at(*entry, "http")) {
        const auto bytes = base64_decode(json::string_at(http, "req_body", "b64"));
        if (!bytes || !bytes->starts_with("k8s")) continue;
        const auto object = decode_protobuf(Schema::builtin(), *bytes);
        EXPECT_TRUE(object) << json::dump(json::at(http, "url")) << ": " << object.error().message;
        ++decoded;
      }
    }
  }
  EXPECT_GT(decoded, 20);
}

TEST(Protobuf, BrokenBodiesAreBadRequests) {
  const std::string envelope("k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12", 16);
  struct {
    const char* name;
    std::string body;
  } cases[] = {
      {"empty", ""},
      {"no magic", "{\"kind\":\"Pod\"}"},
      {"magic only", std::string("k8s\0", 4)},
      {"length past the end", envelope + std::string("\x7f\x0a", 2)},
      {"field past the end", envelope + std::string("\x02\x0a\x7f", 3)},
      {"unknown kind", std::string("k8s\0\x0a\x09\x0a\x02v1\x12\x03Pox\x12\x00", 17)},
      {"wrong wire type", envelope + std::string("\x02\x08\x01", 3)},
  };
  for (const auto& one : cases) {
    const auto object = decode_protobuf(Schema::builtin(), one.body);
    ASSERT_FALSE(object) << one.name;
    EXPECT_EQ(object.error().code, Code::kBadRequest) << one.name;
  }
}

TEST(Protobuf, UnknownFieldsAreSkipped) {
  // Pod{1: metadata{1: "p"}, 99: "new in some later version"}
  const std::string raw("\x0a\x03\x0a\x01p\x9a\x06\x03new", 11);
  const std::string body = std::string("k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12", 16) +
                           static_cast<char>(raw.size()) + raw;
  const auto object = decode_protobuf(Schema::builtin(), body);
  ASSERT_TRUE(object) << object.error().message;
  EXPECT_EQ(json::dump(*object), R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}})");
}

// "kubectl drain" must not evict anybody here: none may be missing is not the same as no rule.
TEST(Protobuf, AZeroThatAPointerHoldsIsKept) {
  // PodDisruptionBudget{2: spec{3: maxUnavailable{1: 0, 2: 0, 3: ""}}}
  const std::string raw("\x12\x08\x1a\x06\x08\x00\x10\x00\x1a\x00", 10);
  const std::string body = std::string("k8s\0\x0a\x20\x0a\x09policy/v1\x12\x13", 19) +
                           "PodDisruptionBudget\x12" + static_cast<char>(raw.size()) + raw;
  const auto object = decode_protobuf(Schema::builtin(), body);
  ASSERT_TRUE(object) << object.error().message;
  EXPECT_EQ(
      json::dump(*object),
      R"({"apiVersion":"policy/v1","kind":"PodDisruptionBudget","spec":{"maxUnavailable":0}})");
}

TEST(Protobuf, AMapsEntryMayHaveNoKey) {
  // Pod{1: metadata{11: {2: "x"}}}
  const std::string raw("\x0a\x05\x5a\x03\x12\x01x", 7);
  const std::string body = std::string("k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12", 16) +
                           static_cast<char>(raw.size()) + raw;
  const auto object = decode_protobuf(Schema::builtin(), body);
  ASSERT_TRUE(object) << object.error().message;
  EXPECT_EQ(json::dump(*object),
            R"({"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"":"x"}}})");
}

}  // namespace
}  // namespace muster::kube
