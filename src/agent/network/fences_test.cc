#include "agent/network/fences.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "agent/process/nat.h"

namespace muster::agent {
namespace {

client::ObjectPtr object(const std::string& text) {
  return std::make_shared<const json::Value>(*json::parse(text));
}

AddressedPod pod(const std::string& ns, const std::string& app, const std::string& address) {
  return {object(R"({"metadata":{"namespace":")" + ns + R"(","name":")" + app +
                 R"(","labels":{"app":")" + app +
                 R"("}},"spec":{"containers":[{"ports":[{"name":"web","containerPort":80)" +
                 address.substr(address.size() - 1) + R"(}]}]}})"),
          address};
}

client::ObjectPtr policy(const std::string& spec) {
  return object(R"({"metadata":{"namespace":"red","name":"p"},"spec":)" + spec + "}");
}

class Fences : public testing::Test {
 protected:
  std::vector<Fence> of(const std::string& spec) const {
    return fences({policy(spec)}, namespaces, pods);
  }
  std::map<std::string, client::ObjectPtr> namespaces{
      {"red", object(R"({"metadata":{"name":"red","labels":{"team":"red"}}})")},
      {"blue", object(R"({"metadata":{"name":"blue","labels":{"team":"blue"}}})")}};
  std::vector<AddressedPod> pods{
      pod("red", "a", "10.0.0.1"), pod("red", "b", "10.0.0.2"), pod("blue", "a", "10.0.0.3")};
};

using Names = std::vector<std::string>;

TEST_F(Fences, APolicyWithoutRulesClosesWhatItSelects) {
  const auto found = of(R"({"podSelector":{},"policyTypes":["Ingress"]})");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].inbound);
  EXPECT_TRUE(found[0].ways.empty());
  EXPECT_EQ(found[0].pods, (Names{"10.0.0.1", "10.0.0.2"}));
  EXPECT_TRUE(
      of(R"({"podSelector":{"matchLabels":{"app":"c"}},"policyTypes":["Ingress"]})").empty());
}

/// The table is everybody's: one namespace does not keep the pods of others from starting.
TEST_F(Fences, WhatANamespaceAsksForBeyondItsShareIsShut) {
  std::string from, ports;
  for (int i = 0; i < 200; ++i) {
    from += (i > 0 ? "," : "") + fmt::format(R"({{"ipBlock":{{"cidr":"10.1.{}.0/24"}}}})", i);
    ports += (i > 0 ? "," : "") + fmt::format(R"({{"port":{}}})", i + 1);
  }
  const auto many = policy(fmt::format(
      R"({{"podSelector":{{}},"policyTypes":["Ingress"],"ingress":[{{"from":[{}],"ports":[{}]}}]}})",
      from,
      ports));
  const auto of_blue = object(
      R"({"metadata":{"namespace":"blue","name":"p"},"spec":{"podSelector":{},"policyTypes":["Ingress"],
          "ingress":[{"from":[{"podSelector":{}}]}]}})");
  const auto found = fences({many, of_blue}, namespaces, pods);
  ASSERT_EQ(found.size(), 2U);
  for (const Fence& fence : found)
    EXPECT_EQ(fence.ways.empty(), fence.pods == (Names{"10.0.0.1", "10.0.0.2"}));
}

TEST_F(Fences, PeersAreOfTheOwnNamespaceUnlessAnotherIsNamed) {
  const auto own = of(
      R"({"podSelector":{"matchLabels":{"app":"b"}},"policyTypes":["Ingress"],
          "ingress":[{"from":[{"podSelector":{"matchLabels":{"app":"a"}}}]}]})");
  ASSERT_EQ(own.size(), 1U);
  EXPECT_EQ(own[0].ways.at(0).peers, Names{"10.0.0.1/32"});
  const auto other = of(
      R"({"podSelector":{"matchLabels":{"app":"b"}},"policyTypes":["Ingress"],
          "ingress":[{"from":[{"namespaceSelector":{"matchLabels":{"team":"blue"}},
                               "podSelector":{"matchLabels":{"app":"a"}}}]}]})");
  EXPECT_EQ(other.at(0).ways.at(0).peers, Names{"10.0.0.3/32"});
  const auto all = of(
      R"({"podSelector":{"matchLabels":{"app":"b"}},"policyTypes":["Egress"],
          "egress":[{"to":[{"namespaceSelector":{}}]}]})");
  EXPECT_FALSE(all.at(0).inbound);
  EXPECT_EQ(all.at(0).ways.at(0).peers, (Names{"10.0.0.3/32", "10.0.0.1/32", "10.0.0.2/32"}));
}

TEST_F(Fences, ANamedPortIsThatOfThePodThatIsCalled) {
  const auto in = of(R"({"podSelector":{},"policyTypes":["Ingress"],
                         "ingress":[{"ports":[{"port":"web"}]}]})");
  ASSERT_EQ(in.size(), 2U);  // each pod has another port by that name
  EXPECT_EQ(in[0].ways.at(0).ports.at(0).first, 801);
  EXPECT_EQ(in[1].ways.at(0).ports.at(0).first, 802);
  const auto out = of(R"({"podSelector":{"matchLabels":{"app":"a"}},"policyTypes":["Egress"],
                          "egress":[{"ports":[{"port":"web"}],"to":[{"podSelector":{}}]}]})");
  ASSERT_EQ(out.size(), 1U);
  ASSERT_EQ(out[0].ways.size(), 2U);
  EXPECT_EQ(out[0].ways[1].peers, Names{"10.0.0.2/32"});
  EXPECT_EQ(out[0].ways[1].ports.at(0).first, 802);
  // A name that nobody has opens nothing.
  const auto none = of(R"({"podSelector":{},"policyTypes":["Ingress"],
                           "ingress":[{"ports":[{"port":"other"}]}]})");
  EXPECT_TRUE(none.at(0).ways.empty());
}

TEST_F(Fences, SeveralPoliciesAddUp) {
  const auto closed = policy(R"({"podSelector":{},"policyTypes":["Ingress"]})");
  const auto open = policy(
      R"({"podSelector":{"matchLabels":{"app":"b"}},"policyTypes":["Ingress"],"ingress":[{}]})");
  const auto found = fences({closed, open}, namespaces, pods);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].pods, Names{"10.0.0.1"});
  EXPECT_EQ(found[1].ways.at(0).peers, Names{"0.0.0.0/0"});
  EXPECT_EQ(found[1].pods, Names{"10.0.0.2"});
}

TEST(NetworkWithout, HalvesUntilTheExceptionsAreOut) {
  EXPECT_EQ(network_without("10.0.0.0/8", {}), Names{"10.0.0.0/8"});
  EXPECT_EQ(network_without("10.0.0.0/30", {"10.0.0.1/32"}), (Names{"10.0.0.0/32", "10.0.0.2/31"}));
  EXPECT_EQ(network_without("0.0.0.0/0", {"0.0.0.0/1"}), Names{"128.0.0.0/1"});
  EXPECT_TRUE(network_without("10.0.0.0/30", {"10.0.0.0/29"}).empty());
  EXPECT_TRUE(network_without("2001:db8::/64", {}).empty());
  EXPECT_EQ(network_without("10.1.2.3/16", {}), Names{"10.1.0.0/16"});
}

TEST(FenceRules, SenderThenReceiverAndAnswersPass) {
  const Fence in{true, {{{"10.0.0.1/32"}, {{"TCP", 80, 80}, {"UDP", 5, 9}}}}, {"10.0.0.2"}};
  const Fence out{false, {{{"0.0.0.0/0"}, {}}}, {"10.0.0.3"}};
  const auto rules = process::nat_rules({"mstr0000aaaa", "10.0.0.0/16"}, {}, {in, out});
  const auto place = [&](const std::string& text) {
    EXPECT_NE(rules.find(text), std::string::npos) << text << "\n" << rules;
    return rules.find(text);
  };
  const auto answers = place("-m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT");
  const auto sender =
      place("-A MUSTER-FWD-0000aaaa -i mstr0000aaaa -s 10.0.0.3/32 -j MUSTER-F1-0000aaaa\n");
  const auto receiver =
      place("-A MUSTER-FWD-0000aaaa -o mstr0000aaaa -d 10.0.0.2/32 -j MUSTER-F0-0000aaaa\n");
  const auto rest = place("-A MUSTER-FWD-0000aaaa -i mstr0000aaaa -j ACCEPT\n");
  EXPECT_LT(answers, sender);
  EXPECT_LT(sender, receiver);
  EXPECT_LT(receiver, rest);
  place("-A MUSTER-F0-0000aaaa -s 10.0.0.1/32 -p tcp --dport 80 -j RETURN\n");
  place("-A MUSTER-F0-0000aaaa -s 10.0.0.1/32 -p udp --dport 5:9 -j RETURN\n");
  place("-A MUSTER-F0-0000aaaa -j DROP\n");
  place("-A MUSTER-F1-0000aaaa -d 0.0.0.0/0 -j RETURN\n");
}

}  // namespace
}  // namespace muster::agent
