#include "agent/process/seccomp_profile.h"

#include <gtest/gtest.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <cerrno>

#include "agent/process/seccomp.h"

namespace muster::agent::process {
namespace {

/// What the kernel would make of a call: the few instructions that filters here are made of.
std::uint32_t run(const std::vector<sock_filter>& filter, const seccomp_data& data) {
  std::uint32_t a = 0;
  for (std::size_t i = 0; i < filter.size(); ++i) {
    const auto& step = filter[i];
    switch (step.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        std::memcpy(&a, reinterpret_cast<const char*>(&data) + step.k, sizeof a);
        break;
      case BPF_ALU | BPF_AND | BPF_K:
        a &= step.k;
        break;
      case BPF_JMP | BPF_JA:
        i += step.k;
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        i += a == step.k ? step.jt : step.jf;
        break;
      case BPF_JMP | BPF_JGT | BPF_K:
        i += a > step.k ? step.jt : step.jf;
        break;
      case BPF_JMP | BPF_JGE | BPF_K:
        i += a >= step.k ? step.jt : step.jf;
        break;
      case BPF_RET | BPF_K:
        return step.k;
      default:
        ADD_FAILURE() << "instruction " << step.code;
        return 0;
    }
  }
  ADD_FAILURE() << "it runs out of the end";
  return 0;
}

class SeccompProfile : public testing::Test {
 protected:
  void read(const std::string& text) {
    auto made = filter_of_profile(text);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    filter = std::move(*made);
  }
  std::uint32_t of(int call, std::uint64_t first = 0, std::uint64_t second = 0) const {
    seccomp_data data{};
    data.nr = call;
    data.arch = filter_head()[1].k;
    data.args[0] = first;
    data.args[1] = second;
    return run(filter, data);
  }
  std::vector<sock_filter> filter;
};

constexpr std::uint32_t kNo = SECCOMP_RET_ERRNO | EPERM;

TEST_F(SeccompProfile, ListsWhatIsRefusedOrWhatIsAllowed) {
  read(R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[
      {"names":["mkdir","mkdirat","no_such_call"],"action":"SCMP_ACT_ERRNO"},
      {"names":["chmod"],"action":"SCMP_ACT_ERRNO","errnoRet":13},
      {"names":["reboot"],"action":"SCMP_ACT_KILL_PROCESS"}]})");
  EXPECT_EQ(of(SYS_mkdirat), kNo);
  EXPECT_EQ(of(SYS_read), SECCOMP_RET_ALLOW);
  EXPECT_EQ(of(SYS_reboot), SECCOMP_RET_KILL_PROCESS);
#ifdef SYS_chmod
  EXPECT_EQ(of(SYS_chmod), SECCOMP_RET_ERRNO | EACCES);
#endif
  read(R"({"defaultAction":"SCMP_ACT_ERRNO","defaultErrnoRet":38,"syscalls":[
      {"names":["read","write","exit_group"],"action":"SCMP_ACT_ALLOW"}]})");
  EXPECT_EQ(of(SYS_write), SECCOMP_RET_ALLOW);
  EXPECT_EQ(of(SYS_mkdirat), SECCOMP_RET_ERRNO | ENOSYS);
  EXPECT_EQ(of(4000), SECCOMP_RET_ERRNO | ENOSYS);
}

TEST_F(SeccompProfile, ComparesAllOfAnArgument) {
  const std::uint64_t value = 0x100000005, more = 0x100000000;
  const auto with = [&](const std::string& op) {
    read(R"({"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["personality"],"action":
        "SCMP_ACT_ALLOW","args":[{"index":0,"value":4294967301,"op":"SCMP_CMP_)" +
         op + R"("}]}]})");
    std::string out;
    for (const std::uint64_t seen : {value - more, value - 1, value, value + 1, value + more})
      out += of(SYS_personality, seen) == SECCOMP_RET_ALLOW ? '+' : '-';
    return out;
  };
  EXPECT_EQ(with("EQ"), "--+--");
  EXPECT_EQ(with("NE"), "++-++");
  EXPECT_EQ(with("LT"), "++---");
  EXPECT_EQ(with("LE"), "+++--");
  EXPECT_EQ(with("GE"), "--+++");
  EXPECT_EQ(with("GT"), "---++");
}

TEST_F(SeccompProfile, AllConditionsOfARuleHoldAndTheFirstRuleThatFitsCounts) {
  read(R"({"defaultAction":"SCMP_ACT_ERRNO","syscalls":[
      {"names":["socket"],"action":"SCMP_ACT_ALLOW","args":[
          {"index":0,"value":2,"op":"SCMP_CMP_EQ"},
          {"index":1,"value":15,"valueTwo":1,"op":"SCMP_CMP_MASKED_EQ"}]},
      {"names":["socket"],"action":"SCMP_ACT_LOG","args":[{"index":0,"value":2,"op":"SCMP_CMP_EQ"}]},
      {"names":["socket"],"action":"SCMP_ACT_ERRNO","errnoRet":97}]})");
  EXPECT_EQ(of(SYS_socket, 2, 1), SECCOMP_RET_ALLOW);
  EXPECT_EQ(of(SYS_socket, 2, 0x801), SECCOMP_RET_ALLOW);
  EXPECT_EQ(of(SYS_socket, 2, 2), SECCOMP_RET_LOG);
  EXPECT_EQ(of(SYS_socket, 10, 1), SECCOMP_RET_ERRNO | EAFNOSUPPORT);
}

TEST_F(SeccompProfile, OfAnotherProcessorIsRefused) {
  read(R"({"defaultAction":"SCMP_ACT_ALLOW"})");
  seccomp_data data{};
  data.arch = 1;
  EXPECT_EQ(run(filter, data), kNo);
}

TEST(SeccompProfiles, SayWhatIsWrong) {
  for (const auto& [text, said] :
       {std::pair("[]", "wanted an object"),
        {"{", ""},
        {"{}", "by default, action: wanted SCMP_ACT_ALLOW"},
        {R"({"defaultAction":"SCMP_ACT_NOTIFY"})", "found \"SCMP_ACT_NOTIFY\""},
        {R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["read"],
                                        "action":"SCMP_ACT_ERRNO","errnoRet":99999}]})",
         "wanted 0 to 4095"},
        {R"({"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["read"],
                                        "action":"SCMP_ACT_ERRNO","args":[{"index":6}]}]})",
         "index of 0 to 5"}}) {
    const auto made = filter_of_profile(text);
    ASSERT_FALSE(made.has_value()) << text;
    EXPECT_NE(made.error().message.find(said), std::string::npos) << made.error().message;
  }
}

}  // namespace
}  // namespace muster::agent::process
