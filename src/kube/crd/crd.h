/// CustomResourceDefinitions: what they serve, their structural schemas (pruning, defaulting,
/// validation), printer columns, status and scale subresources. Versions share one storage;
/// conversion strategy None changes apiVersion. CEL rules (x-kubernetes-validations) are kept in
/// the schema and not evaluated.
#pragma once

#include <memory>

#include "kube/apply/apply.h"
#include "kube/schema/schema.h"

namespace muster::kube {

class StructuralSchema {
 public:
  virtual ~StructuralSchema() = default;
  virtual void prune(json::Value& object, std::vector<std::string>* unknown_paths) const = 0;
  virtual void set_defaults(json::Value& object) const = 0;
  [[nodiscard]] virtual std::vector<Cause> validate(const json::Value& object) const = 0;
  [[nodiscard]] virtual const Shape& shape() const = 0;
  [[nodiscard]] virtual const json::Value& openapi() const = 0;
};

struct CrdVersion {
  std::string name;
  bool served = true, storage = false, deprecated = false;
  std::string deprecation_warning;
  std::shared_ptr<const StructuralSchema> schema;
  ResourceInfo info;  // columns included
  bool status_subresource = false;
  struct Scale {
    std::string spec_path, status_path, selector_path;
  };
  std::optional<Scale> scale;
};

struct Crd {
  std::string group, plural, kind, list_kind;
  bool namespaced = true;
  std::vector<CrdVersion> versions;  // preferred first (Kubernetes' version order)
};

/// Causes when the CRD itself is invalid.
Result<Crd> parse_crd(const json::Value& object);

/// The CRDs that are present from the start: Kubeflow (PyTorchJob, TFJob, XGBoostJob, PaddleJob,
/// JAXJob), MPIJob (v1alpha1, v1, v2beta1), Volcano (Queue, PodGroup, Job, Command, HyperNode), T9k
/// MPIJob, scheduling.x-k8s.io PodGroup.
std::vector<json::Value> bundled_crds();

}  // namespace muster::kube
