/// Puts ConfigMaps of half a kilobyte into the database of an API server that is not running: a
/// million through the API would take minutes, and how they came there makes no difference.
///
///   apiserver_fill FILE COUNT
///
/// They are in namespaces fill-0 … fill-99, which the server must have made.
#include <fmt/core.h>

#include <cstdlib>
#include <memory>

#include "net/loop/loop.h"
#include "store/store.h"

namespace {

using namespace muster;

constexpr int kNamespaces = 100;
/// Below what the store queues.
constexpr int kUnderWayMax = 16'384;

std::string config_map(std::string_view ns, int number, store::Revision revision) {
  return fmt::format(
      R"({{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"map-{0:07}","namespace":"{1}",)"
      R"("uid":"46af36a7-60db-4ec3-8acf-{0:012}","resourceVersion":"{2}",)"
      R"("creationTimestamp":"2026-11-18T00:00:00Z","labels":{{"app":"app-{3}"}},"managedFields":)"
      R"([{{"manager":"fill","operation":"Update","apiVersion":"v1","time":"2026-11-18T00:00:00Z",)"
      R"("fieldsType":"FieldsV1","fieldsV1":{{"f:data":{{".":{{}},"f:a":{{}}}}}}}}]}},)"
      R"("data":{{"a":"{4}"}}}})",
      number,
      ns,
      revision,
      number % 1000,
      std::string(100, 'x'));
}

struct Filling {
  net::Loop loop;
  std::unique_ptr<store::Store> store;
  std::unique_ptr<Signal> told;
  int under_way = 0, failed = 0;
};

Task<void> fill(Filling& filling, int count) {
  for (int i = 0; i < count; ++i) {
    while (filling.under_way >= kUnderWayMax) co_await filling.told->wait(Duration::zero());
    const auto ns = fmt::format("fill-{}", i % kNamespaces);
    const auto text = config_map(ns, i, filling.store->next_revision());
    ++filling.under_way;
    filling.store->write(fmt::format("/configmaps/{}/map-{:07}", ns, i),
                         std::make_shared<const std::string>(text),
                         false,
                         [&filling](const Result<void>& done) {
                           --filling.under_way;
                           if (!done && ++filling.failed == 1)
                             fmt::print(stderr, "apiserver_fill: {}\n", done.error().message);
                           filling.told->notify();
                         });
  }
  co_await filling.store->close();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "apiserver_fill FILE COUNT\n");
    return 2;
  }
  Filling filling;
  filling.told = filling.loop.make_signal();
  auto opened = store::open(filling.loop, argv[1]);
  if (!opened) {
    fmt::print(stderr, "apiserver_fill: {}\n", opened.error().message);
    return 1;
  }
  filling.store = std::move(*opened);
  filling.loop.run_until_done(fill(filling, std::atoi(argv[2])));
  return filling.failed == 0 ? 0 : 1;
}
