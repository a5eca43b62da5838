#include "kube/selector/selector.h"

#include <gtest/gtest.h>

#include "base/strings.h"
#include "kube/kinds/names.h"
#include "kube/kinds/pod.h"
#include "kube/kinds/validate.h"

namespace muster::kube {
namespace {

TEST(LabelSelector, Matches) {
  const auto labels = json::parse(R"({"app":"web","tier":"fe","n":"7"})");
  ASSERT_TRUE(labels);
  struct {
    const char* text;
    bool matches;
    const char* canonical;
  } cases[] = {
      {"", true, ""},
      {"app=web", true, "app=web"},
      {"app==web,tier", true, "app=web,tier"},
      {"tier,app = web", true, "app=web,tier"},
      {"app!=web", false, "app!=web"},
      {"other!=x", true, "other!=x"},
      {"!other", true, "!other"},
      {"! app", false, "!app"},
      {"app in (y, web)", true, "app in (web,y)"},
      {"app notin (web)", false, "app notin (web)"},
      {"other notin (a)", true, "other notin (a)"},
      {"n>6", true, "n>6"},
      {"n<7", false, "n<7"},
      {"app>3", false, "app>3"},
      {"x in ()", false, "x in ()"},
      {"app=", false, "app="},
  };
  for (const auto& one : cases) {
    const auto selector = LabelSelector::parse(one.text);
    ASSERT_TRUE(selector) << one.text << selector.error().message;
    EXPECT_EQ(selector->matches(labels->as_object()), one.matches) << one.text;
    EXPECT_EQ(selector->text(), one.canonical) << one.text;
  }
}

TEST(LabelSelector, ErrorsCarryKubernetesText) {
  struct {
    const char* text;
    const char* message;
  } cases[] = {
      {"a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"},
      {"a in x", "unable to parse requirement: found 'x' expected: '('"},
      {"a in (x", "unable to parse requirement: found '', expected: ',' or ')'"},
      {"a,,b", "unable to parse requirement: found ',', expected: identifier after ','"},
      {"a=b c", "found 'c', expected: ',' or 'end of string'"},
  };
  for (const auto& one : cases) {
    const auto selector = LabelSelector::parse(one.text);
    ASSERT_FALSE(selector) << one.text;
    EXPECT_EQ(selector.error().message, one.message) << one.text;
    EXPECT_EQ(selector.error().code, Code::kBadRequest);
  }
}

TEST(LabelSelector, ObjectForm) {
  const auto labels = json::parse(R"({"app":"web"})");
  const auto selector = json::parse(
      R"({"matchLabels":{"app":"web"},"matchExpressions":[{"key":"x","operator":"DoesNotExist"},{"key":"app","operator":"In","values":["web","y"]}]})");
  ASSERT_TRUE(selector && labels);
  EXPECT_TRUE(LabelSelector::from_object(*selector)->matches(labels->as_object()));
  EXPECT_FALSE(LabelSelector::from_object(nullptr)->matches(labels->as_object()));
  EXPECT_TRUE(LabelSelector::from_object(json::Object())->matches(labels->as_object()));
  EXPECT_FALSE(LabelSelector::from_object(json::Object{
      {"matchExpressions", json::Array{json::Object{{"key", "a"}, {"operator", "In"}}}}}));
}

TEST(LabelSelector, TermsOfOneKeyKeepTheirOrder) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += (text.empty() ? "a=v" : ",a=v") + std::to_string(i);
  EXPECT_EQ(LabelSelector::parse(text)->text(), text);
}

TEST(FieldSelector, MatchesAndRefuses) {
  const auto pod = json::parse(
      R"({"metadata":{"name":"x"},"spec":{"nodeName":"n1"},"status":{"phase":"Running"}})");
  ASSERT_TRUE(pod);
  struct {
    const char* text;
    bool matches;
  } cases[] = {{"", true},
               {"metadata.name=x", true},
               {"spec.nodeName!=n1", false},
               {"status.phase==Running,spec.nodeName=n1", true},
               {"spec.hostNetwork=false", true},
               {"metadata.name=a\\,b", false}};
  for (const auto& one : cases) {
    const auto selector = FieldSelector::parse(one.text);
    ASSERT_TRUE(selector) << one.text;
    EXPECT_TRUE(selector->check("", "Pod")) << one.text;
    EXPECT_EQ(selector->matches(*pod), one.matches) << one.text;
  }
  EXPECT_EQ(FieldSelector::parse("metadata.name=x,spec.nodeName=y")->required_name(), "x");
  EXPECT_EQ(FieldSelector::parse("spec.foo=1")->check("", "Pod").error().message,
            "field label not supported: spec.foo");
  EXPECT_EQ(
      FieldSelector::parse("data.a=1")->check("", "ConfigMap").error().message,
      "\"data.a\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"");
  EXPECT_EQ(FieldSelector::parse("metadata.name").error().message,
            "invalid selector: 'metadata.name'; can't understand 'metadata.name'");
  EXPECT_FALSE(FieldSelector::parse("a=b\\"));
}

TEST(Names, Rules) {
  EXPECT_EQ(check_dns_label("a-1"), "");
  EXPECT_NE(check_dns_label("A"), "");
  EXPECT_NE(check_dns_label(""), "");
  EXPECT_NE(check_dns_label("-a"), "");
  EXPECT_EQ(check_dns_label(std::string(64, 'a')), "must be no more than 63 characters");
  EXPECT_EQ(check_dns_subdomain("a.b-c.d"), "");
  EXPECT_NE(check_dns_subdomain("a..b"), "");
  EXPECT_EQ(check_label_key("example.com/My_Name.x"), "");
  EXPECT_NE(check_label_key("/x"), "");
  EXPECT_NE(check_label_key("a/b/c"), "");
  EXPECT_EQ(check_label_value(""), "");
  EXPECT_NE(check_label_value("-x"), "");
  EXPECT_EQ(check_config_key("..x"), "must not start with '..'");
  EXPECT_TRUE(port_name_problems("http").empty());
  EXPECT_EQ(port_name_problems("A_B").size(), 2U);
}

TEST(Pod, RequestsFollowTheRules) {
  struct {
    const char* name;
    const char* spec;
    const char* want;
  } cases[] = {
      {"sum",
       R"({"containers":[{"resources":{"requests":{"cpu":"500m","nvidia.com/gpu":"1"}}},{"resources":{"requests":{"cpu":"1"}}}]})",
       "cpu=1500 nvidia.com/gpu=1 "},
      {"init is a maximum",
       R"({"containers":[{"resources":{"requests":{"cpu":"1"}}}],"initContainers":[{"resources":{"requests":{"cpu":"3","memory":"1Gi"}}}]})",
       "cpu=3000 memory=1073741824 "},
      {"sidecar adds to both",
       R"({"containers":[{"resources":{"requests":{"cpu":"1"}}}],"initContainers":[{"restartPolicy":"Always","resources":{"requests":{"cpu":"2"}}},{"resources":{"requests":{"cpu":"2"}}}]})",
       "cpu=4000 "},
      {"overhead",
       R"({"containers":[{"resources":{"requests":{"cpu":"1"}}}],"overhead":{"cpu":"250m"}})",
       "cpu=1250 "},
      {"pod level",
       R"({"resources":{"requests":{"cpu":"4"}},"containers":[{"resources":{"requests":{"cpu":"1","nvidia.com/gpu":"2"}}}]})",
       "cpu=4000 nvidia.com/gpu=2 "},
      {"numbers",
       R"({"containers":[{"resources":{"requests":{"cpu":2,"nvidia.com/gpu":3}}}]})",
       "cpu=2000 nvidia.com/gpu=3 "},
  };
  for (const auto& one : cases) {
    const auto spec = json::parse(one.spec);
    ASSERT_TRUE(spec) << one.name;
    std::string have;
    for (const auto& [name, amount] : pod_requests(json::Object{{"spec", *spec}}))
      have += name + "=" + std::to_string(amount) + " ";
    EXPECT_EQ(have, one.want) << one.name;
  }
}

TEST(Pod, QosClass) {
  const auto qos = [](const char* containers) {
    return qos_class(
        json::Object{{"spec", json::Object{{"containers", *json::parse(containers)}}}});
  };
  EXPECT_EQ(qos(R"([{"resources":{}}])"), "BestEffort");
  EXPECT_EQ(
      qos(R"([{"resources":{"requests":{"nvidia.com/gpu":"1"},"limits":{"nvidia.com/gpu":"1"}}}])"),
      "BestEffort");
  EXPECT_EQ(qos(R"([{"resources":{"requests":{"cpu":"1"}}}])"), "Burstable");
  EXPECT_EQ(
      qos(R"([{"resources":{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"1","memory":"1Gi"}}}])"),
      "Guaranteed");
  EXPECT_EQ(
      qos(R"([{"resources":{"requests":{"cpu":"1","memory":"1Gi"},"limits":{"cpu":"1","memory":"1Gi"}}},{}])"),
      "Burstable");
}

TEST(Meta, ConditionsChangeTheirTimeWithTheStatusOnly) {
  json::Value object = json::Object();
  const Time first = Time::from_seconds(1000), second = Time::from_seconds(2000);
  EXPECT_TRUE(set_condition(object, {"Ready", "False", "A", "m"}, first));
  EXPECT_FALSE(set_condition(object, {"Ready", "False", "A", "m"}, second));
  EXPECT_TRUE(set_condition(object, {"Ready", "False", "B", "m"}, second));
  EXPECT_EQ(json::string_at(condition(object, "Ready"), "lastTransitionTime"), format_time(first));
  EXPECT_TRUE(set_condition(object, {"Ready", "True", "B", ""}, second));
  EXPECT_EQ(json::string_at(condition(object, "Ready"), "lastTransitionTime"), format_time(second));
  EXPECT_TRUE(condition_true(object, "Ready"));
  EXPECT_FALSE(condition_true(object, "Other"));
}

}  // namespace
}  // namespace muster::kube
