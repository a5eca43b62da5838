/// The training types: the words people use for them and the resources they are.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/client.h"

namespace muster::cli {

struct Trainer {
  std::string type;        // "mpijob": canonical, upper-cased in the TRAINER column
  std::string alias;       // "MPI"
  std::string short_word;  // "mpi"
  client::Resource resource;
  /// True when arena submits this type as this resource; the others are found by get, list, … all
  /// the same.
  bool submitted = false;

  [[nodiscard]] std::string shown() const;  // "MPIJOB"
  /// "mpijob.kubeflow.org", as kubectl names the kind of a created object.
  [[nodiscard]] std::string kind_group() const;
};

/// In the order in which they are looked for.
const std::vector<Trainer>& trainers();
/// Canonical type for any word of the table ("MPI", "mpi", "mpijob"), empty when it is none. Case
/// does not count.
std::string training_type(std::string_view word);
/// "tf(Tensorflow),py(Pytorch),…" for error messages.
std::string supported_types();
/// The trainer whose objects arena creates for the type; nullptr when it has no back end here.
const Trainer* find_trainer(std::string_view type);

}  // namespace muster::cli
