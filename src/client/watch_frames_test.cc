#include "client/watch_frames.h"

#include <gtest/gtest.h>

#include "kube/meta.h"

namespace muster::client {
namespace {

using namespace std::string_literals;

std::string varint(std::size_t number) {
  std::string out;
  for (; number >= 0x80; number >>= 7) out += static_cast<char>(number | 0x80);
  return out + static_cast<char>(number);
}
std::string field(unsigned number, const std::string& bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + bytes;
}
std::string number_field(unsigned number, std::size_t value) {
  return varint(number << 3) + varint(value);
}

std::string envelope(const std::string& kind, const std::string& raw) {
  return "k8s\0"s + field(1, field(1, "v1") + field(2, kind)) + field(2, raw);
}

std::string frame(const std::string& type, const std::string& object) {
  const std::string event = field(1, type) + field(2, field(1, object));
  std::string length;
  for (int shift = 24; shift >= 0; shift -= 8) length += static_cast<char>(event.size() >> shift);
  return length + event;
}

/// ObjectMeta: name 1, namespace 3, resourceVersion 6, managedFields 17 (manager 1). PodSpec:
/// nodeName 10, hostNetwork 11, priority 25.
std::string pod(const std::string& name) {
  const std::string managed = field(17, field(1, "kubectl"));
  const std::string spec = field(10, "node-1") + number_field(11, 0) + number_field(25, 0);
  return envelope(
      "Pod",
      field(1, field(1, name) + field(3, "default") + field(6, "7") + managed) + field(2, spec));
}

WatchFormat format(bool managed_fields) { return {"watch pods", managed_fields}; }

TEST(WatchFrames, ComeWholeHoweverTheBytesArrive) {
  const std::string stream =
      frame("ADDED", pod("a")) + frame("MODIFIED", pod("b")) + frame("DELETED", pod("c"));
  for (std::size_t step = 1; step <= stream.size(); step += 7) {
    WatchFrames frames;
    std::string seen;
    for (std::size_t at = 0; at < stream.size(); at += step) {
      frames.add(std::string_view(stream).substr(at, step));
      while (const auto next = frames.next()) {
        const auto event = WatchFrames::parse(*next, format(true));
        ASSERT_TRUE(event) << event.error().message;
        seen += event->type + " " + std::string(kube::name_of(*event->object)) + ";";
      }
    }
    EXPECT_EQ(seen, "ADDED a;MODIFIED b;DELETED c;") << "in steps of " << step;
    EXPECT_EQ(frames.pending(), 0U);
  }
}

json::Value parsed(const std::string& stream, bool managed_fields) {
  WatchFrames frames;
  frames.add(stream);
  const auto event = WatchFrames::parse(frames.next().value(), format(managed_fields));
  return event ? *event->object : json::Value();
}

TEST(WatchFrames, HoldTheObjectAsItsJsonWouldBe) {
  const auto want = json::parse(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"default","resourceVersion":"7",
                                     "managedFields":[{"manager":"kubectl"}]},"spec":{"nodeName":"node-1","priority":0}})");
  EXPECT_EQ(parsed(frame("ADDED", pod("a")), true), *want);
}

TEST(WatchFrames, LeaveManagedFieldsOutWhenNobodyWantsThem) {
  const auto object = parsed(frame("ADDED", pod("a")), false);
  EXPECT_EQ(kube::name_of(object), "a");
  EXPECT_TRUE(json::at(object, "metadata", "managedFields").is_null());
}

TEST(WatchFrames, AnErrorIsTheStatusItHolds) {
  // Status: status 2, message 3, reason 4, code 6.
  const std::string status = envelope("Status",
                                      field(2, "Failure") + field(3, "too old resource version") +
                                          field(4, "Expired") + number_field(6, 410));
  WatchFrames frames;
  frames.add(frame("ERROR", status));
  const auto event = WatchFrames::parse(frames.next().value(), format(true));
  ASSERT_FALSE(event);
  EXPECT_EQ(event.error().code, Code::kExpired);
  EXPECT_EQ(event.error().message, "too old resource version");
}

TEST(WatchFrames, WhatIsNoEventIsAnErrorThatNamesTheWatch) {
  for (const std::string& wrong :
       {"\xff"s, ""s, field(2, field(1, pod("a"))), field(1, "ADDED") + field(2, field(1, "{}"))}) {
    const auto event = WatchFrames::parse(wrong, format(true));
    ASSERT_FALSE(event);
    EXPECT_TRUE(event.error().message.starts_with("watch pods: ")) << event.error().message;
  }
}

}  // namespace
}  // namespace muster::client
