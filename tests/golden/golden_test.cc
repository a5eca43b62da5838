/// Runs the command lines of cases.txt against the objects of objects.yaml at a fixed time, through
/// the same functions as the program, and compares what they print with expected/NAME.txt.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "base/strings.h"
#include "cli/shell/session.h"
#include "command/dispatch.h"
#include "command/help.h"
#include "kube/meta.h"
#include "kube/selector/selector.h"
#include "main/commands.h"

namespace muster::cli {
namespace {

const std::filesystem::path kDir = GOLDEN_DIR;
const Time kNow = *parse_time("2026-11-15T02:42:10Z");

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Error not_found(const client::Resource& resource, const std::string& name) {
  Error error;
  error.code = Code::kNotFound;
  error.message = fmt::format("{}{} \"{}\" not found",
                              resource.plural,
                              resource.group.empty() ? "" : "." + resource.group,
                              name);
  return error;
}

/// A cluster that is a map of objects. It answers as an API server would as far as the command line
/// asks.
class MapCluster final : public client::Client {
 public:
  explicit MapCluster(net::Loop& loop) {
    const auto documents = json::parse_yaml(read_file(kDir / "objects.yaml"));
    MUSTER_CHECK(documents.has_value(), documents ? "" : documents.error().message);
    for (const json::Value& object : *documents) {
      const std::string plural = to_lower(json::string_at(object, "kind")) +
                                 (json::string_at(object, "kind") == "PriorityClass" ? "es" : "s");
      objects_[key(json::string_at(object, "apiVersion"),
                   plural,
                   kube::namespace_of(object),
                   kube::name_of(object))] = object;
    }
    const net::Handler handler = [this](net::Request request,
                                        net::ResponseWriter& writer) -> Task<void> {
      net::Response response;
      if (request.target.find("/log?") != std::string::npos) {
        response.body = fmt::format("epoch 1 loss 0.31\nepoch 2 loss 0.12\n{}\n", request.target);
      } else {
        answer_read(request.target, response);
      }
      const auto sent = co_await writer.send(std::move(response));
      (void)sent;
    };
    http_ = net::make_local_client(loop, handler, "tester");
  }

  Task<Result<json::Value>> get(const client::Resource& resource,
                                std::string ns,
                                std::string name) override {
    const auto found = objects_.find(
        key(resource.api_version(), resource.plural, resource.namespaced ? ns : "", name));
    if (found == objects_.end()) co_return fail(not_found(resource, name));
    co_return found->second;
  }
  Task<Result<client::List>> list(const client::Resource& resource,
                                  client::ListOptions options) override {
    client::List out;
    const auto labels = kube::LabelSelector::parse(options.label_selector);
    for (const auto& [at, object] : objects_) {
      if (!at.starts_with(fmt::format("{} {} {}",
                                      resource.api_version(),
                                      resource.plural,
                                      options.ns.empty() ? "" : options.ns + " ")))
        continue;
      if (labels->matches_object(object)) out.items.push_back(object);
    }
    co_return out;
  }
  Task<Result<json::Value>> create(const client::Resource& resource,
                                   std::string ns,
                                   json::Value object,
                                   client::Answer) override {
    const std::string at = key(resource.api_version(),
                               resource.plural,
                               resource.namespaced ? ns : "",
                               kube::name_of(object));
    json::make(object, {"metadata", "uid"}) = fmt::format("uid-{}", objects_.size());
    objects_[at] = object;
    co_return object;
  }
  Task<Result<json::Value>> update(const client::Resource&, json::Value object) override {
    co_return object;
  }
  Task<Result<json::Value>> update_status(const client::Resource&, json::Value object) override {
    co_return object;
  }
  Task<Result<json::Value>> patch(const client::Resource& resource,
                                  std::string ns,
                                  std::string name,
                                  std::string subresource,
                                  client::PatchType,
                                  json::Value patch,
                                  client::Answer) override {
    const auto found = objects_.find(
        key(resource.api_version(), resource.plural, resource.namespaced ? ns : "", name));
    if (found == objects_.end()) co_return fail(not_found(resource, name));
    json::merge_patch(found->second, patch);
    if (!json::at(patch, "metadata", "ownerReferences").is_array())
      changes +=
          fmt::format("PATCH {}/{} {} {}\n", resource.plural, name, subresource, json::dump(patch));
    co_return found->second;
  }
  Task<Result<void>> remove(const client::Resource& resource,
                            std::string ns,
                            std::string name,
                            client::DeleteOptions) override {
    if (objects_.erase(
            key(resource.api_version(), resource.plural, resource.namespaced ? ns : "", name)) == 0)
      co_return fail(not_found(resource, name));
    changes += fmt::format("DELETE {}/{}\n", resource.plural, name);
    co_return Result<void>{};
  }
  Task<Result<json::Value>> post_subresource(const client::Resource&,
                                             std::string,
                                             std::string,
                                             std::string,
                                             json::Value body,
                                             client::Answer) override {
    co_return body;
  }
  Task<Result<json::Value>> raw(std::string, std::string, json::Value) override {
    co_return json::Object{
        {"status", json::Object{{"userInfo", json::Object{{"username", "tester"}}}}}};
  }
  void submit(client::Post, std::function<void(Result<void>)> done) override { done({}); }
  Task<Result<void>> watch(client::Resource,
                           client::WatchOptions,
                           std::function<bool(client::WatchEvent)>) override {
    co_return Result<void>{};
  }
  net::Client& http() override { return *http_; }
  [[nodiscard]] bool sends_text() const override { return false; }
  [[nodiscard]] std::string default_namespace() const override { return "default"; }

  std::string changes;

 private:
  /// A get of one object, or a list.
  void answer_read(const std::string& target, net::Response& response) const {
    const auto parts = net::parse_target(target)->segments;
    const std::size_t at = parts[0] == "api" ? 2 : 3;
    const bool in_namespace = parts.size() == at + 4 && parts[at] == "namespaces";
    if (!in_namespace && parts.size() != at + 2) {
      response.body = list_text(target);
      return;
    }
    const std::string version = parts[0] == "api" ? parts[1] : parts[1] + "/" + parts[2];
    const std::string& plural = parts[parts.size() - 2];
    const auto found =
        objects_.find(key(version, plural, in_namespace ? parts[at + 1] : "", parts.back()));
    if (found != objects_.end()) {
      response.body = json::dump(found->second);
      return;
    }
    response.status = 404;
    response.body = json::dump(json::Object{{"kind", "Status"},
                                            {"reason", "NotFound"},
                                            {"message",
                                             fmt::format("{}{} \"{}\" not found",
                                                         plural,
                                                         parts[0] == "api" ? "" : "." + parts[1],
                                                         parts.back())}});
  }

  /// The answer to GET /apis/GROUP/VERSION[/namespaces/NS]/PLURAL of a server that does not know
  /// `fields`: the commands cut it themselves, and see nothing that they did not ask for.
  std::string list_text(const std::string& target) const {
    const auto parsed = net::parse_target(target);
    const auto& parts = parsed->segments;
    const std::string version = parts[0] == "api" ? parts[1] : parts[1] + "/" + parts[2];
    const std::string ns =
        parts.size() > 4 && parts[parts.size() - 3] == "namespaces" ? parts[parts.size() - 2] : "";
    const auto labels = kube::LabelSelector::parse(parsed->get("labelSelector"));
    const auto fields = kube::FieldSelector::parse(parsed->get("fieldSelector"));
    json::Array items;
    for (const auto& [at, object] : objects_) {
      if (!at.starts_with(
              fmt::format("{} {} {}", version, parts.back(), ns.empty() ? "" : ns + " ")))
        continue;
      if (labels->matches_object(object) && fields->matches(object)) items.push_back(object);
    }
    return json::dump(json::Object{{"kind", "List"}, {"items", items}});
  }

  static std::string key(std::string_view version,
                         std::string_view plural,
                         std::string_view ns,
                         std::string_view name) {
    return fmt::format("{} {} {} {}", version, plural, ns, name);
  }

  std::map<std::string, json::Value> objects_;
  std::unique_ptr<net::Client> http_;
};

/// Splits a line into words; double quotes keep blanks.
std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool quoted_part = false, any = false;
  for (const char c : line) {
    if (c == '"') {
      quoted_part = !quoted_part;
      any = true;
    } else if (c == ' ' && !quoted_part) {
      if (any || !word.empty()) words.push_back(word);
      word.clear();
      any = false;
    } else {
      word += c;
    }
  }
  if (any || !word.empty()) words.push_back(word);
  return words;
}

std::string run_line(const std::string& line) {
  Console console = Console::captured();
  int code = 0;
  std::string changes;
  const command::Program program = make_program("arena");
  const command::Located found = command::locate(program, words_of(line));
  const auto finish = [&] {
    std::string text = console.captured_out;
    if (!console.captured_err.empty()) text += "--- standard error\n" + console.captured_err;
    if (!changes.empty()) text += "--- changes\n" + changes;
    return text + fmt::format("--- exit {}\n", code);
  };
  if (const auto answered = command::answer_without_running(console, program, found)) {
    code = *answered;
    return finish();
  }
  Result<Values> values =
      command::parse_flags(found.command->flags, found.section->flags, found.rest);
  if (const auto answered = command::check_call(console, program, found, values)) {
    code = *answered;
    return finish();
  }
  const auto* in_session = found.command->run.target<InSession>();
  if (in_session == nullptr) {
    Call call{program, *found.command, "arena " + found.path, *values, console};
    code = found.command->run(call);
    return finish();
  }
  net::Loop loop;
  Session session(loop, console);
  session.program = "arena";
  session.fixed_now = kNow;
  session.ns_given = values->given("namespace");
  if (session.ns_given) session.ns = values->text("namespace");
  auto cluster = std::make_unique<MapCluster>(loop);
  MapCluster& seen = *cluster;
  session.use(std::move(cluster));
  Invocation invocation{*found.command, *values, session, program};
  const auto task = [](Task<int> work, int& exit_code) -> Task<void> {
    exit_code = co_await std::move(work);
  };
  loop.run_until_done(task(in_session->work(invocation), code));
  changes = seen.changes;
  return finish();
}

struct Case {
  std::string name, line;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string& line : split_nonempty(read_file(kDir / "cases.txt"), '\n')) {
    const std::size_t colon = line.find(": ");
    if (line[0] == '#' || colon == std::string::npos) continue;
    all.push_back({line.substr(0, colon), line.substr(colon + 2)});
  }
  return all;
}

class Golden : public testing::TestWithParam<Case> {};

TEST_P(Golden, PrintsWhatIsExpected) {
  ::setenv("TZ", "UTC", 1);
  const std::filesystem::path file = kDir / "expected" / (GetParam().name + ".txt");
  const std::string text = "$ arena " + GetParam().line + "\n" + run_line(GetParam().line);
  if (std::getenv("MUSTER_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(file, std::ios::binary) << text;
    return;
  }
  ASSERT_TRUE(std::filesystem::exists(file))
      << file << " is missing; MUSTER_UPDATE_GOLDEN=1 writes it";
  EXPECT_EQ(text, read_file(file));
}

INSTANTIATE_TEST_SUITE_P(Commands, Golden, testing::ValuesIn(cases()), [](const auto& info) {
  return replace_all(info.param.name, "-", "_");
});

TEST(GoldenCases, EveryCommandHasOne) {
  std::string lines;
  for (const Case& each : cases()) lines += each.line + " \n";
  for (const command::Section& section : make_program("muster").sections) {
    for (const std::string& name : command::names_of(section.commands, false)) {
      EXPECT_TRUE(lines.find("\n" + name + " ") != std::string::npos ||
                  lines.starts_with(name + " "))
          << name << " has no golden case";
    }
  }
}

TEST(ManPage, IsTheOneThatIsShipped) {
  const std::string page = command::man_page(make_program("muster"));
  if (std::getenv("MUSTER_UPDATE_GOLDEN") != nullptr)
    std::ofstream(MAN_PAGE, std::ios::binary) << page;
  EXPECT_EQ(page, read_file(MAN_PAGE)) << "write it with: muster man > docs/muster.1";
}

/// Whoever asks for help gets an example, a description of every flag, and no empty line.
TEST(HelpPages, SayWhatEachFlagDoes) {
  const auto look = [](const auto& self, const Command& at, const std::string& path) -> void {
    if (at.hidden) return;
    EXPECT_FALSE(at.summary.empty()) << path;
    for (const Flag& flag : at.flags)
      EXPECT_TRUE(flag.hidden || !flag.help.empty()) << path << " --" << flag.name;
    for (const Command& child : at.children) self(self, child, path + " " + child.name);
  };
  for (const command::Section& section : make_program("muster").sections) {
    for (const Command& each : section.commands) look(look, each, each.name);
  }
}

}  // namespace
}  // namespace muster::cli
