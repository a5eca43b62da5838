#include "controllers/controllers.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "controllers/batchjob/plan.h"
#include "controllers/common/native_kinds.h"
#include "controllers/common/training_kinds.h"
#include "controllers/cronjob/plan.h"
#include "controllers/daemonset/plan.h"
#include "controllers/deployment/plan.h"
#include "controllers/framework/plan.h"
#include "controllers/mpijob/v1.h"
#include "controllers/mpijob/v1alpha1.h"
#include "controllers/mpijob/v2beta1.h"
#include "controllers/mpijob/version.h"
#include "controllers/replicaset/plan.h"
#include "controllers/statefulset/plan.h"
#include "controllers/t9k/plan.h"
#include "controllers/vcjob/plan.h"
#include "kube/framework.h"
#include "kube/names.h"
#include "kube/resources.h"

namespace muster::controllers {
namespace {

namespace r = client::resources;
using Looks = std::vector<std::string_view>;

std::function<bool(const json::Value&)> only_version(const char* version) {
  return [version](const json::Value& job) { return mpijob::version_of(job) == version; };
}

void add_kubeflow(std::vector<Kind>& kinds) {
  const Looks training{kinds::kPod,
                       kinds::kService,
                       kinds::kHorizontalPodAutoscaler,
                       kinds::kVolcanoPodGroup,
                       kinds::kPluginsPodGroup};
  kinds.push_back(
      {"pytorchjob-controller", r::kPyTorchJobs, training, plan_with(pytorchjob::kind()), {}});
  kinds.push_back({"tfjob-controller", r::kTFJobs, training, plan_with(tfjob::kind()), {}});
  kinds.push_back(
      {"xgboostjob-controller", r::kXGBoostJobs, training, plan_with(xgboostjob::kind()), {}});
  kinds.push_back(
      {"paddlejob-controller", r::kPaddleJobs, training, plan_with(paddlejob::kind()), {}});
  kinds.push_back({"jaxjob-controller", r::kJAXJobs, training, plan_with(jaxjob::kind()), {}});
  kinds.push_back({"mpijob-controller",
                   r::kMPIJobsV1,
                   {kinds::kPod,
                    kinds::kConfigMap,
                    kinds::kServiceAccount,
                    kinds::kRole,
                    kinds::kRoleBinding,
                    kinds::kVolcanoPodGroup,
                    kinds::kPluginsPodGroup},
                   mpijob::v1::plan,
                   only_version("v1")});
  kinds.push_back({"mpi-job-controller",
                   r::kMPIJobsV2Beta1,
                   {kinds::kPod,
                    kinds::kService,
                    kinds::kConfigMap,
                    kinds::kSecret,
                    kinds::kJob,
                    kinds::kVolcanoPodGroup,
                    kinds::kPluginsPodGroup},
                   mpijob::v2beta1::plan,
                   only_version("v2beta1")});
  kinds.push_back({"mpi-job-controller",
                   r::kMPIJobsV1Alpha1,
                   {kinds::kPod,
                    kinds::kConfigMap,
                    kinds::kServiceAccount,
                    kinds::kRole,
                    kinds::kRoleBinding,
                    kinds::kJob,
                    kinds::kStatefulSet},
                   mpijob::v1alpha1::plan,
                   only_version("v1alpha1")});
}

}  // namespace

void set_gang_scheduler(Settings& settings, const std::string& name) {
  const auto word = to_lower(name);
  settings.gang = word.empty() || word == "none"          ? Gang::kNone
                  : word == "volcano" || word == "muster" ? Gang::kVolcano
                                                          : Gang::kSchedulerPlugins;
  if (settings.gang != Gang::kNone)
    settings.gang_scheduler = settings.gang == Gang::kVolcano ? word : name;
}

std::vector<Kind> all_kinds(bool workloads) {
  std::vector<Kind> result;
  add_kubeflow(result);
  result.push_back(
      {"mpijob-controller",
       r::kT9kMPIJobs,
       {kinds::kPod, kinds::kService, kinds::kConfigMap, kinds::kSecret, kinds::kT9kPodGroup},
       t9k::plan,
       {}});
  result.push_back({"frameworkcontroller",
                    r::kFrameworks,
                    {kinds::kPod, kinds::kConfigMap, kinds::kSecret, kinds::kVolcanoPodGroup},
                    framework::plan,
                    {}});
  if (workloads) {
    // Where Volcano is installed its own controller runs these.
    result.push_back(
        {"vcjob-controller",
         r::kVolcanoJobs,
         {kinds::kPod, kinds::kService, kinds::kConfigMap, kinds::kSecret, kinds::kVolcanoPodGroup},
         vcjob::plan,
         {}});
    result.push_back({"job-controller",
                      r::kJobs,
                      {kinds::kPod, kinds::kWorkload, kinds::kNativePodGroup},
                      batchjob::plan,
                      {}});
    result.push_back({"cronjob-controller", r::kCronJobs, {kinds::kJob}, cronjob::plan, {}});
    result.push_back({"statefulset-controller",
                      r::kStatefulSets,
                      {kinds::kPod, kinds::kPersistentVolumeClaim, kinds::kControllerRevision},
                      statefulset::plan,
                      {}});
    result.push_back({"daemonset-controller",
                      r::kDaemonSets,
                      {kinds::kPod, kinds::kNode, kinds::kControllerRevision},
                      daemonset::plan,
                      {},
                      true});
    result.push_back(
        {"replicaset-controller", r::kReplicaSets, {kinds::kPod}, replicaset::plan, {}});
    result.push_back(
        {"deployment-controller", r::kDeployments, {kinds::kReplicaSet}, deployment::plan, {}});
  }
  return result;
}

Controllers::Controllers(Env& env,
                         client::Client& client,
                         client::Informers& informers,
                         Options options)
    : informers_(informers),
      options_(std::move(options)),
      kinds_(all_kinds(options_.workloads)),
      caches_(informers) {
  for (const Kind& kind : kinds_) {
    recorders_.push_back(client::make_event_recorder(env, client, kind.name, ""));
    frames_.push_back(std::make_unique<Frame>(
        Frame::Deps{env, client, informers, caches_, *recorders_.back(), options_.settings},
        kind,
        options_.workers));
  }
  if (options_.workloads)
    nodes_ = std::make_unique<nodes::Controller>(env, client, informers_, options_.node_grace);
  if (options_.workloads) podgc_ = std::make_unique<podgc::Controller>(env, client, caches_);
  if (options_.workloads)
    endpoints_ = std::make_unique<endpoints::Controller>(env, client, caches_, options_.workers);
  queues_ = std::make_unique<queue::Controller>(env, client, informers);
  keeper_ = std::make_unique<t9k::Keeper>(env, client, informers, caches_);
}

Controllers::~Controllers() = default;

Task<void> Controllers::start() {
  informers_.start_all();
  co_await informers_.wait_synced();
  for (auto& frame : frames_) frame->start();
  if (endpoints_) endpoints_->start();
  if (podgc_) podgc_->start();
  if (nodes_) nodes_->start();
  queues_->start();
  keeper_->start();
  log::info("controllers",
            "started kinds={} gang={}",
            frames_.size(),
            options_.settings.gang == Gang::kNone ? "none" : options_.settings.gang_scheduler);
}

Task<void> Controllers::stop() {
  for (auto& frame : frames_) co_await frame->stop();
  if (endpoints_) co_await endpoints_->stop();
  if (podgc_) co_await podgc_->stop();
  if (nodes_) co_await nodes_->stop();
  co_await queues_->stop();
  co_await keeper_->stop();
  for (auto& recorder : recorders_) co_await recorder->flush();
}

bool Controllers::idle() const {
  return std::all_of(
             frames_.begin(), frames_.end(), [](const auto& frame) { return frame->idle(); }) &&
         (!podgc_ || podgc_->idle());
}

Drafted Controllers::draft(const json::Value& job, Time now) const {
  const DraftRules rules{kinds_,
                         options_.settings,
                         [this](std::string_view name) { return caches_.priority_of(name); },
                         now};
  return controllers::draft(job, rules);
}

const client::Resource* Controllers::find_resource(std::string_view api_version,
                                                   std::string_view kind) const {
  return controllers::find_resource(kinds_, api_version, kind);
}

}  // namespace muster::controllers
