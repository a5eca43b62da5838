#include "kube/apply/creation.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "kube/apply/difference.h"
#include "kube/schema/schema.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Object;
using json::Value;

/// Pods whose parts come, go and change: structs, maps, lists with keys and without, sets, nulls.
class RandomPods {
 public:
  explicit RandomPods(std::uint64_t seed) : random_(seed) {}

  Value pod() {
    Value out = Object{{"apiVersion", "v1"}, {"kind", "Pod"}};
    Object metadata{{"name", "p"}, {"uid", text()}};
    some(metadata, "labels", [&] { return words(); });
    some(metadata, "annotations", [&] { return words(); });
    some(metadata, "finalizers", [&] { return Value(Array{text(), "always"}); });
    some(metadata, "ownerReferences", [&] {
      return Value(Array{Object{{"uid", text()}, {"name", text()}, {"kind", "Job"}}});
    });
    out.get_object()["metadata"] = std::move(metadata);
    some(out.get_object(), "spec", [&] { return spec(); });
    some(out.get_object(), "status", [&] { return status(); });
    some(out.get_object(), "unheardOf", [&] { return words(); });
    return out;
  }

 private:
  template <typename Make>
  void some(Object& object, std::string_view key, Make make) {
    if (random_.chance(5))
      object[key] = nullptr;
    else if (random_.chance(70))
      object[key] = make();
  }
  std::string text() { return std::string(1, static_cast<char>('a' + random_.below(4))); }
  Value words() {
    Object out;
    for (const std::string_view key : {"x", "y/\"z\"", "w"}) some(out, key, [&] { return text(); });
    return out;
  }
  Value list(auto make) {
    Array out;
    while (random_.chance(60)) out.push_back(make());
    return out;
  }
  Value spec() {
    Object out;
    some(out, "nodeName", [&] { return text(); });
    some(out, "nodeSelector", [&] { return words(); });
    some(out, "securityContext", [&] { return random_.chance(50) ? words() : Object(); });
    some(out, "tolerations", [&] { return list([&] { return Value(Object{{"key", text()}}); }); });
    some(out, "containers", [&] { return list([&] { return container(); }); });
    return out;
  }
  Value container() {
    Object out{{"name", text()}};
    some(out, "image", [&] { return text(); });
    some(out, "command", [&] { return list([&] { return Value(text()); }); });
    some(out, "env", [&] {
      return list([&] { return Value(Object{{"name", text()}, {"value", text()}}); });
    });
    some(out, "ports", [&] {
      return list([&] {
        Object port{{"containerPort", static_cast<std::int64_t>(random_.below(3))}};
        some(port, "protocol", [&] { return random_.chance(50) ? "TCP" : "UDP"; });
        some(port, "name", [&] { return text(); });
        return Value(std::move(port));
      });
    });
    some(out, "resources", [&] { return Value(Object{{"limits", words()}}); });
    return out;
  }
  Value status() {
    Object out;
    some(out, "phase", [&] { return text(); });
    some(out, "podIPs", [&] { return list([&] { return Value(Object{{"ip", text()}}); }); });
    some(out, "conditions", [&] {
      return list([&] {
        Object condition{{"type", text()}};
        some(condition, "status", [&] { return text(); });
        some(condition, "reason", [&] { return text(); });
        return Value(std::move(condition));
      });
    });
    return out;
  }

  Random random_;
};

TEST(ChangeText, SaysWhatTheSetsSay) {
  const Shape& pods = shape_of(*Schema::builtin().find_type({"", "v1", "Pod"}));
  int unlike = 0, with_gone = 0;
  for (std::uint64_t seed = 1; seed <= 20'000; ++seed) {
    RandomPods random(seed);
    const Value before = random.pod(), now = random.pod();
    const std::string subresource = seed % 2 == 0 ? "" : "status";
    const Shape* shape = seed % 5 == 0 ? nullptr : &pods;
    Difference sets = difference(shape, before, now, subresource);
    bool gone = false;
    const std::string text = change_text(shape, before, now, subresource, &gone);
    const bool removed = !sets.removed.empty();
    FieldSet owned = std::move(sets.added);
    owned.add(std::move(sets.modified));
    ASSERT_EQ(text, owned.text()) << "seed " << seed << "\n"
                                  << json::dump(before) << "\n"
                                  << json::dump(now);
    ASSERT_EQ(gone, removed) << "seed " << seed;
    unlike += text != "{}" ? 1 : 0;
    with_gone += gone ? 1 : 0;
  }
  EXPECT_GT(unlike, 15'000);
  EXPECT_GT(with_gone, 5'000);
}

}  // namespace
}  // namespace muster::kube
