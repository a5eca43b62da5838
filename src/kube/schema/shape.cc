// The shapes of the built-in kinds, made once from the table.
#include <algorithm>
#include <deque>
#include <unordered_map>

#include "kube/apply/apply.h"

namespace muster::kube {
namespace {

class TypeShape;

/// All shapes of the built-in types. They point at each other and live for ever.
struct Shapes {
  std::unordered_map<const Type*, std::unique_ptr<TypeShape>> by_type;
  std::deque<std::unique_ptr<Shape>> others;

  Shapes();
  const Shape* of_field(const FieldType& type, const Field* field);
};

const std::vector<std::string>& no_keys() {
  static const std::vector<std::string> kNone;
  return kNone;
}

class TypeShape : public Shape {
 public:
  explicit TypeShape(const Type& type) : type_(type) {}
  void build(Shapes& shapes) {
    static constexpr std::string_view kPlain[] = {"metadata",
                                                  "spec",
                                                  "status",
                                                  "strategy",
                                                  "updateStrategy",
                                                  "template",
                                                  "resources",
                                                  "source"};
    for (const auto& [name, field] : type_.fields) {
      const bool plain = std::find(std::begin(kPlain), std::end(kPlain), name) != std::end(kPlain);
      members_.push_back(
          {shapes.of_field(field.type, &field),
           plain || (field.required && field.type.shape != FieldType::Shape::kScalar)});
    }
  }
  const Shape* member(std::string_view name) const override {
    const Field* field = type_.find(name);
    return field == nullptr ? nullptr : members_[field->ordinal].shape;
  }
  const Shape* item() const override { return nullptr; }
  ListKind list_kind() const override { return ListKind::kAtomic; }
  const std::vector<std::string>& list_keys() const override { return no_keys(); }
  bool atomic_map() const override { return type_.map_type == "atomic"; }
  bool declares(std::string_view name) const override { return type_.find(name) != nullptr; }
  bool always_there(std::string_view name) const override {
    const Field* field = type_.find(name);
    return field != nullptr && members_[field->ordinal].always;
  }

 private:
  const Type& type_;
  struct Member {
    const Shape* shape;
    bool always;  // see always_there()
  };
  std::vector<Member> members_;  // by the field's ordinal
};

/// A message whose field says otherwise than its type (PersistentVolumeSpec.claimRef is granular).
class FieldMessageShape : public Shape {
 public:
  FieldMessageShape(const Shape& inner, bool atomic) : inner_(inner), atomic_(atomic) {}
  const Shape* member(std::string_view name) const override { return inner_.member(name); }
  const Shape* item() const override { return nullptr; }
  ListKind list_kind() const override { return ListKind::kAtomic; }
  const std::vector<std::string>& list_keys() const override { return no_keys(); }
  bool atomic_map() const override { return atomic_; }
  bool declares(std::string_view name) const override { return inner_.declares(name); }
  bool always_there(std::string_view name) const override { return inner_.always_there(name); }

 private:
  const Shape& inner_;
  bool atomic_;
};

class ContainerShape : public Shape {
 public:
  ContainerShape(const Shape* element, const Field* field, bool atomic)
      : element_(element), field_(field), atomic_(atomic) {}
  const Shape* member(std::string_view) const override { return element_; }
  const Shape* item() const override { return element_; }
  ListKind list_kind() const override {
    if (field_ == nullptr) return ListKind::kAtomic;
    if (field_->list_type == "map") return ListKind::kMap;
    return field_->list_type == "set" ? ListKind::kSet : ListKind::kAtomic;
  }
  const std::vector<std::string>& list_keys() const override {
    return field_ == nullptr ? no_keys() : field_->list_map_keys;
  }
  bool atomic_map() const override { return atomic_; }

 private:
  const Shape* element_;
  const Field* field_;
  bool atomic_;
};

const Shape* Shapes::of_field(const FieldType& type, const Field* field) {
  const std::string_view map_type =
      field == nullptr ? std::string_view() : std::string_view(field->map_type);
  switch (type.shape) {
    case FieldType::Shape::kMessage: {
      const Shape* inner = by_type.at(type.type).get();
      if (map_type.empty()) return inner;
      others.push_back(std::make_unique<FieldMessageShape>(*inner, map_type == "atomic"));
      return others.back().get();
    }
    case FieldType::Shape::kList:
    case FieldType::Shape::kMap:
      others.push_back(std::make_unique<ContainerShape>(
          of_field(*type.element, nullptr), field, map_type == "atomic"));
      return others.back().get();
    case FieldType::Shape::kScalar:
      break;
  }
  // Free-form values (RawExtension, JSON) are owned as one.
  static const ContainerShape kLeaf(nullptr, nullptr, true);
  return &kLeaf;
}

Shapes::Shapes() {
  for (const auto& [name, type] : Schema::builtin().types())
    by_type.emplace(&type, std::make_unique<TypeShape>(type));
  for (auto& [type, shape] : by_type) shape->build(*this);
}

}  // namespace

const Shape& shape_of(const Type& type) {
  static const Shapes kShapes;
  return *kShapes.by_type.at(&type);
}

}  // namespace muster::kube
