/// What was recorded from real API servers (tests/data/recordings), for the tests of kube.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "json/json.h"
#include "lib/data.h"

namespace muster::kube::recorded {

inline std::string read(const std::string& name) { return tests::read_data("recordings/" + name); }

inline json::Value read_json(const std::string& name) {
  auto value = json::parse(read(name));
  if (!value) throw std::runtime_error(name + " is no JSON: " + value.error().message);
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
  std::istringstream lines(read(name));
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
