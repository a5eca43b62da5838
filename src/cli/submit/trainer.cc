#include "cli/submit/trainer.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"

namespace muster::cli {
namespace {

client::Resource resource(std::string group,
                          std::string version,
                          std::string plural,
                          std::string kind) {
  client::Resource made;
  made.group = std::move(group);
  made.version = std::move(version);
  made.plural = std::move(plural);
  made.kind = std::move(kind);
  return made;
}

struct Words {
  std::string_view type, alias, short_word;
};
constexpr Words kWords[] = {
    {"tfjob", "Tensorflow", "tf"},
    {"pytorchjob", "Pytorch", "py"},
    {"mpijob", "MPI", "mpi"},
    {"horovodjob", "Horovod", "horovod"},
    {"volcanojob", "Volcano", "volcano"},
    {"etjob", "ElasticTraining", "et"},
    {"sparkjob", "Spark", "spark"},
    {"deepspeedjob", "DeepSpeed", "dp"},
    {"rayjob", "RayJob", "rj"},
    {"xgboostjob", "XGBoost", "xgb"},
    {"paddlejob", "Paddle", "paddle"},
    {"jaxjob", "JAX", "jax"},
};

}  // namespace

std::string Trainer::shown() const {
  std::string upper = type;
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return upper;
}

std::string Trainer::kind_group() const {
  return fmt::format("{}.{}", to_lower(resource.kind), resource.group);
}

const std::vector<Trainer>& trainers() {
  static const std::vector<Trainer> kTrainers{
      {"mpijob", "MPI", "mpi", resource("kubeflow.org", "v1alpha1", "mpijobs", "MPIJob"), true},
      {"pytorchjob",
       "Pytorch",
       "py",
       resource("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob"),
       true},
      {"tfjob", "Tensorflow", "tf", resource("kubeflow.org", "v1", "tfjobs", "TFJob"), true},
      {"mpijob", "MPI", "mpi", resource("kubeflow.org", "v2beta1", "mpijobs", "MPIJob")},
      {"mpijob", "MPI", "mpi", resource("kubeflow.org", "v1", "mpijobs", "MPIJob")},
      {"xgboostjob", "XGBoost", "xgb", resource("kubeflow.org", "v1", "xgboostjobs", "XGBoostJob")},
      {"paddlejob", "Paddle", "paddle", resource("kubeflow.org", "v1", "paddlejobs", "PaddleJob")},
      {"jaxjob", "JAX", "jax", resource("kubeflow.org", "v1", "jaxjobs", "JAXJob")},
      {"mpijob", "MPI", "mpi", resource("batch.tensorstack.dev", "v1beta1", "mpijobs", "MPIJob")},
      {"volcanojob",
       "Volcano",
       "volcano",
       resource("batch.volcano.sh", "v1alpha1", "jobs", "Job"),
       true},
  };
  return kTrainers;
}

std::string training_type(std::string_view word) {
  const std::string lower = to_lower(word);
  for (const Words& words : kWords) {
    if (lower == words.type || lower == to_lower(words.alias) || lower == words.short_word)
      return std::string(words.type);
  }
  if (lower == "pytorch") return "pytorchjob";
  if (lower == "elastic") return "etjob";
  return "";
}

std::string supported_types() {
  std::vector<std::string> words;
  for (const Words& each : kWords)
    words.push_back(fmt::format("{}({})", each.short_word, each.alias));
  return join(words, ",");
}

const Trainer* find_trainer(std::string_view type) {
  for (const Trainer& trainer : trainers()) {
    if (trainer.type == type && trainer.submitted) return &trainer;
  }
  return nullptr;
}

}  // namespace muster::cli
