/// What one pod costs on its way through the API server's pure parts, and what the table of kinds
/// costs to load.
#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "kube/apply/apply.h"
#include "kube/apply/strategic.h"
#include "kube/crd/crd.h"
#include "kube/kinds/validate.h"
#include "kube/schema/openapi.h"
#include "kube/table/table.h"

using namespace muster;

namespace {

constexpr std::string_view kPod =
    R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"job-worker-0","namespace":"team-a","labels":{"training.kubeflow.org/job-name":"job",)"
    R"("training.kubeflow.org/replica-type":"worker","training.kubeflow.org/replica-index":"0"},"annotations":{"scheduling.k8s.io/group-name":"job"},)"
    R"("ownerReferences":[{"apiVersion":"kubeflow.org/v1","kind":"PyTorchJob","name":"job","uid":"0b1f7c52-5b0a-4f0c-9d5e-1a2b3c4d5e6f","controller":true,"blockOwnerDeletion":true}]},)"
    R"("spec":{"volumes":[{"name":"shm","emptyDir":{"medium":"Memory"}},{"name":"data","persistentVolumeClaim":{"claimName":"data"}}],"containers":[{"name":"pytorch",)"
    R"("image":"registry/pytorch:2.1","command":["python","train.py"],"args":["--epochs=3"],"env":[{"name":"MASTER_ADDR","value":"job-master-0"},{"name":"MASTER_PORT","value":"23456"},)"
    R"({"name":"WORLD_SIZE","value":"4"},{"name":"RANK","value":"1"},{"name":"PYTHONUNBUFFERED","value":"1"}],"ports":[{"name":"pytorchjob-port","containerPort":23456}],)"
    R"("resources":{"limits":{"cpu":"8","memory":"64Gi","nvidia.com/gpu":"4"},"requests":{"cpu":"4","memory":"64Gi"}},"volumeMounts":[{"name":"shm","mountPath":"/dev/shm"},{"name":"data","mountPath":"/data"}]}],)"
    R"("restartPolicy":"Never","schedulerName":"muster","tolerations":[{"key":"nvidia.com/gpu","operator":"Exists","effect":"NoSchedule"}],"nodeSelector":{"gpu":"a100"}}})";

long resident_kb() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("VmRSS:")) return std::stol(line.substr(6));
  }
  return 0;
}

/// Processor time, so that a busy machine does not change the figures much.
double cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

/// The least of several runs, in microseconds per call.
double measure(const std::function<void()>& work, int calls) {
  std::vector<double> runs;
  for (int run = 0; run < 7; ++run) {
    const double start = cpu_us();
    for (int i = 0; i < calls; ++i) work();
    runs.push_back((cpu_us() - start) / calls);
  }
  return *std::min_element(runs.begin(), runs.end());
}

}  // namespace

int main() {
  const long before_kb = resident_kb();
  const double start = cpu_us();
  const kube::Schema& schema = kube::Schema::builtin();
  fmt::print("table of kinds: {:.2f} ms, {} kB resident\n",
             (cpu_us() - start) / 1000,
             resident_kb() - before_kb);
  const double crds_start = cpu_us();
  std::vector<kube::Crd> crds;
  for (const json::Value& object : kube::bundled_crds()) crds.push_back(*kube::parse_crd(object));
  fmt::print("bundled CRDs: {:.2f} ms, {} kB resident in all\n",
             (cpu_us() - crds_start) / 1000,
             resident_kb() - before_kb);

  const kube::Gvk gvk{"", "v1", "Pod"};
  const kube::Type& type = *schema.find_type(gvk);
  const json::Value parsed = *json::parse(kPod);
  json::Value made = parsed;
  kube::set_defaults(kube::kind_of(gvk), made);
  kube::prepare_create(kube::kind_of(gvk), made, Time::from_seconds(1));
  kube::ApplyRequest request;
  request.manager = "bench";
  request.api_version = "v1";
  request.now = Time::from_seconds(1);
  json::Value changed = made;
  changed.at("metadata").as_object()["labels"] = json::Object{{"a", "b"}};
  const json::Value patch =
      *json::parse(R"({"status":{"conditions":[{"type":"PodScheduled","status":"True"}]}})");
  const auto* pods = &*std::find_if(schema.resources().begin(),
                                    schema.resources().end(),
                                    [](const auto& info) { return info.plural == "pods"; });

  const auto print = [](const char* name, double us) {
    fmt::print("{:34} {:8.2f} us\n", name, us);
  };
  print("parse", measure([&] { (void)json::parse(kPod); }, 2000));
  print("check fields", measure([&] { (void)kube::check_fields(type, parsed); }, 2000));
  print("copy", measure([&] { json::Value copy = parsed; }, 2000));
  print("copy + defaults + prepare",
        measure(
            [&] {
              json::Value copy = parsed;
              kube::set_defaults(kube::kind_of(gvk), copy);
              kube::prepare_create(kube::kind_of(gvk), copy, Time::from_seconds(1));
            },
            2000));
  print("validate create",
        measure([&] { (void)kube::validate_create(kube::kind_of(gvk), true, made); }, 2000));
  print(
      "validate update",
      measure([&] { (void)kube::validate_update(kube::kind_of(gvk), true, changed, made); }, 2000));
  print("track create",
        measure(
            [&] {
              json::Value copy = made;
              kube::track_update(&kube::shape_of(type), nullptr, copy, request);
            },
            500));
  json::Value tracked = made;
  kube::track_update(&kube::shape_of(type), nullptr, tracked, request);
  print("track update of labels",
        measure(
            [&] {
              json::Value copy = tracked;
              copy.at("metadata").as_object()["labels"] = json::Object{{"a", "b"}};
              kube::track_update(&kube::shape_of(type), &tracked, copy, request);
            },
            500));
  print("strategic patch of a condition",
        measure(
            [&] {
              json::Value copy = made;
              (void)kube::strategic_merge(type, copy, patch);
            },
            1000));
  print("table row",
        measure([&] { (void)kube::table_row(*pods, made, Time::from_seconds(2)); }, 2000));
  print("write", measure([&] { (void)json::dump(made); }, 2000));
  print("OpenAPI document of v1",
        measure([&] { (void)kube::openapi_v3(schema, "", "v1", crds); }, 3));
  return 0;
}
