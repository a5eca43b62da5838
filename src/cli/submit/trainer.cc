#include "cli/submit/trainer.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "kube/framework.h"
#include "kube/resources.h"

namespace muster::cli {
namespace {

namespace r = kube::resources;

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
    {"paijob", "OpenPAI", "pai"},
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
      {"mpijob", "MPI", "mpi", r::kMPIJobsV1Alpha1, true},
      {"pytorchjob", "Pytorch", "py", r::kPyTorchJobs, true},
      {"tfjob", "Tensorflow", "tf", r::kTFJobs, true},
      {"mpijob", "MPI", "mpi", r::kMPIJobsV2Beta1},
      {"mpijob", "MPI", "mpi", r::kMPIJobsV1},
      {"xgboostjob", "XGBoost", "xgb", r::kXGBoostJobs},
      {"paddlejob", "Paddle", "paddle", r::kPaddleJobs},
      {"jaxjob", "JAX", "jax", r::kJAXJobs},
      {"mpijob", "MPI", "mpi", r::kT9kMPIJobs},
      {"volcanojob", "Volcano", "volcano", r::kVolcanoJobs, true},
      {"paijob", "OpenPAI", "pai", r::kFrameworks, true},
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
