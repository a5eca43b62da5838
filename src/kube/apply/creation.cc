#include "kube/apply/creation.h"

#include <algorithm>

#include "json/text.h"
#include "kube/apply/granular.h"
#include "kube/apply/owned.h"

namespace muster::kube {

using json::Object;
using json::Value;

namespace {

/// Writes one set.
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

  /// True when something has gone.
  bool change(const Shape* shape,
              const Value& before,
              const Value& now,
              const std::string& subresource) {
    const Object& old = json::as_object(before);
    std::vector<Step> steps;
    for (const auto& member : json::as_object(now)) {
      if (!owned_member(member.key(), subresource) || member.value().is_null()) continue;
      const Value* was = earlier(shape, old.if_contains(member.key()), member.key());
      if (was != nullptr && json::equal(*was, member.value())) continue;
      steps.push_back({member.key(), was, &member.value()});
    }
    for (const auto& member : old) {
      gone_ = gone_ || (owned_member(member.key(), subresource) &&
                        !json::as_object(now).contains(member.key()));
    }
    Value metadata_before, metadata_now;
    if (subresource.empty() && !same_owned_metadata(before, now)) {
      metadata_before = owned_metadata(before);
      metadata_now = owned_metadata(now);
      steps.push_back({"metadata", &metadata_before, &metadata_now});
    }
    begin();
    write_steps(shape, steps);
    end();
    return gone_;
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

  // ---- The same between two states

  struct Step {
    std::string_view key;
    const Value* before;  // null: was not there
    const Value* now;
  };

  static const Value* earlier(const Shape* shape, const Value* before, std::string_view key) {
    return before == nullptr && shape != nullptr && shape->always_there(key) ? &json::null_value()
                                                                             : before;
  }

  void write_steps(const Shape* shape, std::vector<Step>& steps) {
    std::sort(
        steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.key < b.key; });
    for (const Step& step : steps) {
      const std::size_t mark = out_.size();
      const bool was_fresh = fresh_;
      key("f:", step.key);
      const Shape* inner = member_of(shape, step.key);
      if (step.before == nullptr) {
        appeared(inner, *step.now);
      } else if (!changed(inner, *step.before, *step.now)) {
        out_.resize(mark);
        fresh_ = was_fresh;
      }
    }
  }

  /// What differs between two values, as compare() of difference.cc looks at them. False: nothing
  /// was written.
  bool changed(const Shape* shape, const Value& before, const Value& now) {
    const Value& sample = now.is_null() ? before : now;
    const bool same_kind = before.is_null() || now.is_null() || before.kind() == now.kind();
    const bool nothing = json::is_empty(before) && json::is_empty(now);
    begin();
    if (same_kind && !nothing && granular_map(shape, sample)) {
      changed_members(shape, json::as_object(before), json::as_object(now));
    } else if (same_kind && !nothing && granular_list(shape, sample)) {
      changed_items(*shape, before, now);
    } else {
      end();
      return !json::equal(before, now);
    }
    const bool any = !fresh_;
    end();
    return any;
  }

  void changed_members(const Shape* shape, const Object& before, const Object& now) {
    std::vector<Step> steps;
    // Two states of one object have their members in the same order nearly always.
    auto beside = before.begin();
    std::size_t kept = 0;
    for (const auto& member : now) {
      const Value* old = nullptr;
      if (beside != before.end() && beside->key() == member.key())
        old = &(beside++)->value();
      else
        old = before.if_contains(member.key());
      if (old != nullptr) ++kept;
      if (old != nullptr && json::equal(*old, member.value())) continue;
      old = earlier(shape, old, member.key());
      if (member.value().is_null() && (old == nullptr || old->is_null())) continue;
      steps.push_back({member.key(), old, &member.value()});
    }
    gone_ = gone_ || kept != before.size();
    write_steps(shape, steps);
  }

  void changed_items(const Shape& shape, const Value& before, const Value& now) {
    const auto old_items = by_element(shape, json::as_array(before));
    const auto new_items = by_element(shape, json::as_array(now));
    std::size_t kept = 0;
    for (const auto& [element, item] : new_items) {
      const auto old = old_items.find(element);
      const bool was_there = old != old_items.end();
      if (was_there) ++kept;
      if (was_there && json::equal(*old->second, *item)) continue;
      const std::size_t mark = out_.size();
      const bool was_fresh = fresh_;
      key("", element);
      if (!was_there) {
        appeared(shape.item(), *item);
      } else if (!changed(shape.item(), *old->second, *item)) {
        out_.resize(mark);
        fresh_ = was_fresh;
      }
    }
    gone_ = gone_ || kept != old_items.size();
  }

  std::string& out_;
  bool gone_ = false;  // something that was there is not any more
  bool fresh_ = true;  // nothing stands in the innermost open object
};

}  // namespace

std::string creation_text(const Shape* shape, const Value& object, const std::string& subresource) {
  std::string text;
  Creation(text).object(shape, object, subresource);
  return text;
}

std::string change_text(const Shape* shape,
                        const Value& before,
                        const Value& now,
                        const std::string& subresource,
                        bool* gone) {
  std::string text;
  *gone = Creation(text).change(shape, before, now, subresource);
  return text;
}

}  // namespace muster::kube
