#include "agent/process/users.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"

namespace muster::agent::process {
namespace {

constexpr std::int64_t kIdMax = 4294967294;

std::optional<std::int64_t> id_of(std::string_view text) {
  const auto number = parse_int(text);
  return number && *number >= 0 && *number <= kIdMax ? number : std::nullopt;
}

/// The line of a list whose name or number (third field) is `wanted`.
std::vector<std::string> find_line(std::string_view list,
                                   std::string_view wanted,
                                   std::size_t fields_min) {
  const auto number = id_of(wanted);
  for (const auto& line : split_nonempty(list, '\n')) {
    auto fields = split(line, ':');
    if (fields.size() < fields_min || !id_of(fields[2])) continue;
    if (fields[0] == wanted || (number && id_of(fields[2]) == number)) return fields;
  }
  return {};
}

}  // namespace

Result<User> find_user(std::string_view passwd, std::string_view group, std::string_view wanted) {
  User out;
  const auto colon = wanted.find(':');
  auto name = wanted.substr(0, colon);
  if (name.empty()) name = "0";
  const auto line = find_line(passwd, name, 6);
  if (!line.empty()) {
    out.id = *id_of(line[2]);
    out.group = id_of(line[3]).value_or(0);
    if (!line[5].empty()) out.home = line[5];
  } else if (const auto number = id_of(name); number) {
    out.id = *number;
    if (out.id == 0) out.home = "/root";
  } else {
    return fail(Code::kInvalid,
                fmt::format("unable to find user {}: no matching entries in passwd file", name));
  }
  for (const auto& entry : split_nonempty(group, '\n')) {
    const auto fields = split(entry, ':');
    if (line.empty() || fields.size() < 4 || !id_of(fields[2])) continue;
    const auto members = split_nonempty(fields[3], ',');
    if (std::find(members.begin(), members.end(), line[0]) != members.end())
      out.groups.push_back(*id_of(fields[2]));
  }
  if (colon == std::string_view::npos || colon + 1 == wanted.size()) return out;
  const auto group_name = wanted.substr(colon + 1);
  out.groups.clear();  // whoever names a group wants that one
  const auto found = find_line(group, group_name, 3);
  if (!found.empty()) {
    out.group = *id_of(found[2]);
  } else if (const auto number = id_of(group_name); number) {
    out.group = *number;
  } else {
    return fail(
        Code::kInvalid,
        fmt::format("unable to find group {}: no matching entries in group file", group_name));
  }
  return out;
}

}  // namespace muster::agent::process
