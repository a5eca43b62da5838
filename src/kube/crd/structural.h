/// A CRD version's openAPIV3Schema, compiled into nodes: pruning, defaults, validation and shape in
/// one tree.
#pragma once

#include <memory>
#include <optional>

#include "kube/crd/crd.h"
#include "kube/kinds/causes.h"

namespace muster::kube {

class SchemaNode : public Shape {
 public:
  /// `root` knows apiVersion, kind and metadata by itself, as does an embedded resource.
  SchemaNode(const json::Value& schema, bool root, int depth);

  void prune(json::Value& value, const std::string& path, std::vector<std::string>* unknown) const;
  void set_defaults(json::Value& value) const;
  void validate(const json::Value& value, const std::string& path, Causes& causes) const;

  const Shape* member(std::string_view name) const override;
  const Shape* item() const override { return items_.get(); }
  ListKind list_kind() const override { return list_kind_; }
  const std::vector<std::string>& list_keys() const override { return list_keys_; }
  bool atomic_map() const override { return atomic_map_; }
  bool declares(std::string_view name) const override;
  bool always_there(std::string_view name) const override {
    return resource_ && name == "metadata";
  }

 private:
  [[nodiscard]] const SchemaNode* child(std::string_view name) const;
  void validate_type(const json::Value& value,
                     const std::string& path,
                     Causes& causes,
                     bool& fits) const;
  void validate_scalar(const json::Value& value, const std::string& path, Causes& causes) const;
  void validate_object(const json::Value& value, const std::string& path, Causes& causes) const;
  void validate_list(const json::Value& value, const std::string& path, Causes& causes) const;
  void validate_junctors(const json::Value& value, const std::string& path, Causes& causes) const;

  std::string type_, format_, pattern_;
  bool resource_ = false, preserve_ = false, int_or_string_ = false, nullable_ = false,
       unique_ = false;
  bool exclusive_minimum_ = false, exclusive_maximum_ = false, atomic_map_ = false;
  std::optional<double> minimum_, maximum_, multiple_of_;
  std::optional<std::int64_t> min_length_, max_length_, min_items_, max_items_, min_properties_,
      max_properties_;
  std::vector<std::string> required_;
  json::Array enum_;
  std::optional<json::Value> default_;
  std::map<std::string, std::unique_ptr<SchemaNode>, std::less<>> properties_;
  std::unique_ptr<SchemaNode> additional_, items_, not_;
  bool any_additional_ = false;
  std::vector<std::unique_ptr<SchemaNode>> one_of_, any_of_, all_of_;
  ListKind list_kind_ = ListKind::kAtomic;
  std::vector<std::string> list_keys_;
};

}  // namespace muster::kube
