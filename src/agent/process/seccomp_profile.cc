#include "agent/process/seccomp_profile.h"

#include <fmt/core.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <map>
#include <unordered_map>

#include "agent/process/seccomp.h"
#include "json/json.h"

namespace muster::agent::process {
namespace {

using json::at;
using Program = std::vector<sock_filter>;

/// By name, as this processor numbers them.
const std::unordered_map<std::string_view, std::uint32_t>& calls() {
  static const std::unordered_map<std::string_view, std::uint32_t> kCalls = {
#include MUSTER_SYSTEM_CALLS
  };
  return kCalls;
}

sock_filter statement(int code, std::size_t value) {
  return BPF_STMT(static_cast<std::uint16_t>(code), static_cast<std::uint32_t>(value));
}
sock_filter answer(std::uint32_t value) { return statement(BPF_RET | BPF_K, value); }

Error wrong(std::string message) { return Error{Code::kInvalid, std::move(message)}; }

Result<std::uint32_t> action(const json::Value& name, const json::Value& number) {
  const auto code = json::as_int(number, EPERM);
  if (code < 0 || code > 4095)
    return fail(wrong(fmt::format("errnoRet: wanted 0 to 4095, found {}", json::dump(number))));
  static const std::map<std::string_view, std::uint32_t> kActions = {
      {"SCMP_ACT_ALLOW", SECCOMP_RET_ALLOW},
      {"SCMP_ACT_ERRNO", SECCOMP_RET_ERRNO},
      {"SCMP_ACT_KILL", SECCOMP_RET_KILL_THREAD},
      {"SCMP_ACT_KILL_THREAD", SECCOMP_RET_KILL_THREAD},
      {"SCMP_ACT_KILL_PROCESS", SECCOMP_RET_KILL_PROCESS},
      {"SCMP_ACT_TRAP", SECCOMP_RET_TRAP},
      {"SCMP_ACT_LOG", SECCOMP_RET_LOG}};
  const auto found = kActions.find(json::as_string(name));
  if (found == kActions.end())
    return fail(wrong(fmt::format(
        "action: wanted SCMP_ACT_ALLOW, _ERRNO, _KILL, _KILL_PROCESS, _TRAP or _LOG, found {}",
        json::dump(name))));
  return found->second == SECCOMP_RET_ERRNO ? found->second | static_cast<std::uint32_t>(code)
                                            : found->second;
}

/// Where a step of a condition goes on: behind the condition that holds, or behind a rule of which
/// one does not.
enum class To { kNext, kHolds, kFails };
struct Step {
  sock_filter code;
  To yes = To::kNext, no = To::kNext;
};

sock_filter test(int kind, std::uint32_t value) {
  return BPF_JUMP(static_cast<std::uint16_t>(BPF_JMP | kind | BPF_K), value, 0, 0);
}

/// One argument, whose halves are compared one after the other.
Result<std::vector<Step>> condition(const json::Value& argument) {
  const auto index = json::int_at(argument, "index");
  if (index < 0 || index > 5)
    return fail(wrong(fmt::format("args: wanted an index of 0 to 5, found {}", index)));
  const auto number = [&](const char* name) {
    const auto& value = at(argument, name);
    return value.is_uint64() ? value.get_uint64() : static_cast<std::uint64_t>(json::as_int(value));
  };
  const auto high = [](std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); };
  const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  const auto place =
      offsetof(seccomp_data, args) + sizeof(std::uint64_t) * static_cast<std::size_t>(index);
  const Step load_low{statement(BPF_LD | BPF_W | BPF_ABS, place)};
  const Step load_high{statement(BPF_LD | BPF_W | BPF_ABS, place + sizeof(std::uint32_t))};
  const auto value = number("value");
  const Step same_high{test(BPF_JEQ, high(value)), To::kNext, To::kFails};
  const auto op = json::string_at(argument, "op");
  if (op == "SCMP_CMP_EQ")
    return std::vector<Step>{
        load_high, same_high, load_low, {test(BPF_JEQ, low(value)), To::kHolds, To::kFails}};
  if (op == "SCMP_CMP_NE")
    return std::vector<Step>{load_high,
                             {test(BPF_JEQ, high(value)), To::kNext, To::kHolds},
                             load_low,
                             {test(BPF_JEQ, low(value)), To::kFails, To::kHolds}};
  if (op == "SCMP_CMP_GE" || op == "SCMP_CMP_GT")
    return std::vector<Step>{
        load_high,
        {test(BPF_JGT, high(value)), To::kHolds, To::kNext},
        same_high,
        load_low,
        {test(op == "SCMP_CMP_GE" ? BPF_JGE : BPF_JGT, low(value)), To::kHolds, To::kFails}};
  if (op == "SCMP_CMP_LE" || op == "SCMP_CMP_LT")
    return std::vector<Step>{
        load_high,
        {test(BPF_JGT, high(value)), To::kFails, To::kNext},
        {test(BPF_JEQ, high(value)), To::kNext, To::kHolds},
        load_low,
        {test(op == "SCMP_CMP_LE" ? BPF_JGT : BPF_JGE, low(value)), To::kFails, To::kHolds}};
  if (op == "SCMP_CMP_MASKED_EQ") {
    const auto wanted = number("valueTwo");
    return std::vector<Step>{load_high,
                             {statement(BPF_ALU | BPF_AND | BPF_K, high(value))},
                             {test(BPF_JEQ, high(wanted)), To::kNext, To::kFails},
                             load_low,
                             {statement(BPF_ALU | BPF_AND | BPF_K, low(value))},
                             {test(BPF_JEQ, low(wanted)), To::kHolds, To::kFails}};
  }
  return fail(
      wrong(fmt::format("args: op: wanted SCMP_CMP_EQ, _NE, _LT, _LE, _GE, _GT or _MASKED_EQ, "
                        "found \"{}\"",
                        op)));
}

/// Answers if all its conditions hold; else what stands behind it is run.
Result<Program> rule_program(const json::Array& arguments, std::uint32_t verdict) {
  constexpr std::size_t kArgumentsMax = 6;
  if (arguments.size() > kArgumentsMax)
    return fail(
        wrong(fmt::format("args: wanted at most {}, found {}", kArgumentsMax, arguments.size())));
  std::vector<std::vector<Step>> conditions;
  std::size_t size = 1;
  for (const auto& argument : arguments) {
    auto one = condition(argument);
    if (!one) return fail(one.error());
    size += one->size();
    conditions.push_back(std::move(*one));
  }
  Program out;
  for (const auto& steps : conditions) {
    const auto holds = out.size() + steps.size();
    for (const auto& step : steps) {
      const auto next = out.size() + 1;
      const auto jump = [&](To to) {
        const auto target = to == To::kNext ? next : to == To::kHolds ? holds : size;
        return static_cast<std::uint8_t>(target - next);
      };
      auto code = step.code;
      if (BPF_CLASS(code.code) == BPF_JMP) code.jt = jump(step.yes), code.jf = jump(step.no);
      out.push_back(code);
    }
  }
  out.push_back(answer(verdict));
  return out;
}

bool same(const Program& a, const Program& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
}

struct Range {
  std::uint32_t first;
  const Program* program;
};

/// A search by halves. The long jump is a statement of its own: conditions reach only so far.
Program search(const std::vector<Range>& ranges, std::size_t begin, std::size_t end) {
  if (end - begin == 1) return *ranges[begin].program;
  const auto middle = begin + (end - begin) / 2;
  const auto low = search(ranges, begin, middle), high = search(ranges, middle, end);
  auto up = test(BPF_JGE, ranges[middle].first);
  up.jt = 0, up.jf = 1;
  Program out{up, statement(BPF_JMP | BPF_JA, low.size())};
  out.insert(out.end(), low.begin(), low.end());
  out.insert(out.end(), high.begin(), high.end());
  return out;
}

/// What each listed call runs into, by number.
Result<std::map<std::uint32_t, Program>> programs(const json::Value& profile) {
  std::map<std::uint32_t, Program> out;
  // A rule without conditions leaves nothing to those behind.
  std::map<std::uint32_t, bool> settled;
  for (const auto& entry : json::array_at(profile, "syscalls")) {
    const auto verdict = action(at(entry, "action"), at(entry, "errnoRet"));
    if (!verdict) return fail(verdict.error());
    const auto& arguments = json::array_at(entry, "args");
    const auto rule = rule_program(arguments, *verdict);
    if (!rule) return fail(rule.error());
    for (const auto& name : json::array_at(entry, "names")) {
      const auto found = calls().find(json::as_string(name));
      if (found == calls().end() || settled[found->second]) continue;
      auto& program = out[found->second];
      program.insert(program.end(), rule->begin(), rule->end());
      settled[found->second] = arguments.empty();
    }
  }
  return out;
}

}  // namespace

Result<Program> filter_of_profile(std::string_view text) {
  const auto profile = json::parse(text);
  if (!profile) return fail(profile.error());
  if (!profile->is_object()) return fail(wrong("wanted an object with defaultAction and syscalls"));
  const auto usual = action(at(*profile, "defaultAction"), at(*profile, "defaultErrnoRet"));
  if (!usual) return fail(wrong("by default, " + usual.error().message));
  auto found = programs(*profile);
  if (!found) return fail(found.error());
  const Program rest{answer(*usual)};
  for (auto& [call, program] : *found) program.push_back(rest.front());
  std::vector<Range> ranges{{0, &rest}};
  const auto add = [&](std::uint32_t first, const Program& program) {
    if (ranges.back().first == first) ranges.pop_back();
    if (ranges.empty() || !same(*ranges.back().program, program))
      ranges.push_back({first, &program});
  };
  for (const auto& [call, program] : *found) {
    add(call, program);
    add(call + 1, rest);
  }
  auto out = filter_head();
  if (out.empty()) return fail(wrong("system calls of this processor are not known here"));
  const auto body = search(ranges, 0, ranges.size());
  out.insert(out.end(), body.begin(), body.end());
  if (out.size() > BPF_MAXINSNS)
    return fail(wrong(fmt::format(
        "it is too long: {} steps, and the kernel takes {}", out.size(), BPF_MAXINSNS)));
  return out;
}

}  // namespace muster::agent::process
