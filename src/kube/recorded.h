/// For tests: what was recorded from real API servers, found beside the repository. Absent: the
/// test skips.
#pragma once

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "json/json.h"

namespace muster::kube::recorded {

/// ../shared seen from the repository's root, which is above the program that runs.
inline std::filesystem::path folder() {
  const std::filesystem::path wanted = "shared/data/kubernetes-transcripts";
  for (auto at = std::filesystem::read_symlink("/proc/self/exe").parent_path();
       at.has_relative_path();
       at = at.parent_path()) {
    if (std::filesystem::exists(at / wanted)) return at / wanted;
  }
  return "../" / wanted;
}

inline std::optional<std::string> read(const std::string& name) {
  std::ifstream in(folder() / name);
  if (!in) return std::nullopt;
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

inline std::optional<json::Value> read_json(const std::string& name) {
  const auto text = read(name);
  if (!text) return std::nullopt;
  auto value = json::parse(*text);
  if (!value) return std::nullopt;
  return std::move(*value);
}

/// One exchange between a client and a recorded server.
struct Exchange {
  std::string suite, method, url, path, content_type;
  json::Value request, answer;
  int status = 0;
};

/// The exchanges of a .jsonl transcript whose bodies were kept as JSON.
inline std::vector<Exchange> exchanges(const std::string& name) {
  std::vector<Exchange> out;
  const auto text = read(name);
  if (!text) return out;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const auto entry = json::parse(line);
    if (!entry) continue;
    for (const json::Value& http : json::array_at(*entry, "http")) {
      Exchange one;
      one.suite = json::text_at(*entry, "name");
      one.method = json::text_at(http, "method");
      one.url = json::text_at(http, "url");
      one.path = one.url.substr(0, one.url.find('?'));
      one.content_type = json::text_at(http, "req_headers", "Content-Type");
      one.request = json::at(http, "req_body", "json");
      one.answer = json::at(http, "resp_body", "json");
      one.status = static_cast<int>(json::int_at(http, "status"));
      out.push_back(std::move(one));
    }
  }
  return out;
}

}  // namespace muster::kube::recorded

#define SKIP_WITHOUT(value) \
  if (!(value)) GTEST_SKIP() << "no recorded transcripts in " << ::muster::kube::recorded::folder()
