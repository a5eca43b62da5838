#include "kube/apply/creation.h"

#include <algorithm>

#include "json/text.h"
#include "kube/apply/granular.h"
#include "kube/apply/owned.h"

namespace muster::kube {

using json::Object;
using json::Value;

namespace {

class Creation {
 public:
  explicit Creation(std::string& out) : out_(out) { out_.reserve(1024); }

  void object(const Shape* shape, const Value& object, const std::string& subresource) {
    Members members;
    for (const auto& member : json::as_object(object)) {
      if (owned_member(member.key(), subresource) && !member.value().is_null())
        members.push_back({member.key(), &member.value()});
    }
    const Value metadata = subresource.empty() ? owned_metadata(object) : Value(Object());
    if (!json::as_object(metadata).empty()) members.push_back({"metadata", &metadata});
    begin();
    fields(shape, members, /*top=*/true);
    end();
  }

 private:
  struct Member {
    std::string_view key;
    const Value* value;
  };
  using Members = std::vector<Member>;

  void begin() {
    out_ += '{';
    fresh_ = true;
  }
  void end() {
    out_ += '}';
    fresh_ = false;
  }
  void key(std::string_view prefix, std::string_view text) {
    if (!fresh_) out_ += ',';
    fresh_ = false;
    json::append_key(out_, prefix, text);
  }

  void fields(const Shape* shape, Members& members, bool top) {
    std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
      return a.key < b.key;
    });
    for (const Member& member : members) {
      const Shape* inner = member_of(shape, member.key);
      const bool there = (top && member.key == "metadata") ||
                         (shape != nullptr && shape->always_there(member.key));
      if (!there) {
        key("f:", member.key);
        appeared(inner, *member.value);
        continue;
      }
      // Was there, empty: it is no member itself, and left out when nothing in it is.
      const std::size_t mark = out_.size();
      const bool was_fresh = fresh_;
      key("f:", member.key);
      if (!filled(inner, *member.value)) {
        out_.resize(mark);
        fresh_ = was_fresh;
      }
    }
  }

  static Members members_of(const Value& value) {
    Members members;
    for (const auto& member : value.get_object()) {
      if (!member.value().is_null()) members.push_back({member.key(), &member.value()});
    }
    return members;
  }

  void items(const Shape& shape, const Value& value) {
    for (const auto& [element, item] : by_element(shape, value.get_array())) {
      key("", element);
      appeared(shape.item(), *item);
    }
  }

  /// A value that was not there: it and all in it.
  void appeared(const Shape* shape, const Value& value) {
    begin();
    if (granular_map(shape, value)) {
      Members members = members_of(value);
      if (!members.empty()) key("", ".");
      if (!members.empty()) out_ += "{}";
      std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
        return a.key < b.key;
      });
      for (const Member& member : members) {
        key("f:", member.key);
        appeared(member_of(shape, member.key), *member.value);
      }
    } else if (granular_list(shape, value) && !value.get_array().empty()) {
      key("", ".");
      out_ += "{}";
      items(*shape, value);
    }
    end();
  }

  /// A value in the place of an empty one. False: nothing to own.
  bool filled(const Shape* shape, const Value& value) {
    begin();
    const bool granular =
        !json::is_empty(value) && (granular_map(shape, value) || granular_list(shape, value));
    if (granular && value.is_object()) {
      Members members = members_of(value);
      fields(shape, members, /*top=*/false);
    } else if (granular) {
      items(*shape, value);
    }
    const bool any = !granular || !fresh_;
    end();
    return any;
  }

  std::string& out_;
  bool fresh_ = true;  // nothing stands in the innermost open object
};

}  // namespace

std::string creation_text(const Shape* shape, const Value& object, const std::string& subresource) {
  std::string text;
  Creation(text).object(shape, object, subresource);
  return text;
}

}  // namespace muster::kube
