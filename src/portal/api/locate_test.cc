#include "portal/api/locate.h"

#include <gtest/gtest.h>

namespace muster::portal {
namespace {

constexpr std::string_view kJob = R"(# a comment
apiVersion: batch/v1
kind: Job
metadata:
  name: x
  annotations: {a.b/c: "1", "d": 2}
spec:
  parallelism: many
  template:
    spec:
      containers:
      - name: main
        image: python
      - {name: side, colour: red}
)";

std::string at(std::string_view path) {
  const Spot spot = locate(kJob, path_parts(path));
  return std::to_string(spot.line) + ":" + std::to_string(spot.col);
}

TEST(Locate, KeysAreFoundWhereTheyStand) {
  EXPECT_EQ(at("kind"), "3:1");
  EXPECT_EQ(at("spec.parallelism"), "8:3");
  EXPECT_EQ(at(".spec.template.spec.containers"), "11:7");
  EXPECT_EQ(at("spec.template.spec.containers[0].image"), "13:9");
  EXPECT_EQ(at("spec.template.spec.containers[1].colour"), "14:22");
  EXPECT_EQ(at("metadata.annotations[a.b/c]"), "6:17");
  EXPECT_EQ(at("metadata.annotations['d']"), "6:30");
}

TEST(Locate, WhatIsMissingIsMarkedAtItsParent) {
  EXPECT_EQ(at("spec.template.spec.restartPolicy"), "10:5");
  EXPECT_EQ(at("spec.template.spec.containers[7].name"), "11:7");
  EXPECT_EQ(at("nothing.like.it"), "1:1");
  EXPECT_EQ(at(""), "1:1");
}

TEST(Locate, AnErrorOfTheYamlItselfHasItsLine) {
  EXPECT_EQ(spot_of_message("line 7: found a tab").line, 7);
  EXPECT_EQ(spot_of_message("line 7, column 3: found a tab").col, 3);
  EXPECT_EQ(spot_of_message("no place").line, 0);
  EXPECT_EQ(locate("a: b\n\tc: d\n", {"a"}).line, 2);
}

TEST(Locate, PathsOfBothKindsAreReadAlike) {
  EXPECT_EQ(path_parts(".taskRoles['train'].instances"),
            (std::vector<std::string>{"taskRoles", "train", "instances"}));
  EXPECT_EQ(path_parts("spec.containers[0].env[2].name"),
            (std::vector<std::string>{"spec", "containers", "0", "env", "2", "name"}));
  EXPECT_EQ(path_parts("a[unclosed"), (std::vector<std::string>{"a"}));
}

TEST(Locate, ErrorsOfAControllerAreTakenApart) {
  using List = std::vector<std::string>;
  EXPECT_EQ(validation_errors(
                "it makes no pods now: Found validation errors: spec.a: Required value: b, c"),
            (List{"spec.a: Required value: b, c"}));
  EXPECT_EQ(validation_errors(
                "Found validation errors: [spec.a[X]: Forbidden: y, spec.b: Required value: z]"),
            (List{"spec.a[X]: Forbidden: y", "spec.b: Required value: z"}));
  EXPECT_EQ(validation_errors("would start now"), List{});
}

}  // namespace
}  // namespace muster::portal
