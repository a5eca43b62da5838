#include "agent/agent.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "agent/cri/cri_runtime.h"
#include "agent/cri/network.h"
#include "agent/cri/pause_image.h"
#include "agent/files.h"
#include "agent/hollow/hollow_pods.h"
#include "agent/image/image_source.h"
#include "agent/network/dns.h"
#include "agent/network/network_policies.h"
#include "agent/network/services.h"
#include "agent/network/tcp_proxy.h"
#include "agent/node/devices.h"
#include "agent/node/disk_watch.h"
#include "agent/node/node_keeper.h"
#include "agent/node/pod_metrics.h"
#include "agent/node/run_directory.h"
#include "agent/pod/pod_workers.h"
#include "agent/pod/runtime_choice.h"
#include "agent/process/process_runtime.h"
#include "agent/runtimes.h"
#include "agent/streams/former_logs.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "kube/resources.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using client::ObjectPtr;

/// The machine's first address that is not loopback, for status.hostIP.
std::string machine_address() {
  ifaddrs* list = nullptr;
  std::string out = "127.0.0.1";
  if (getifaddrs(&list) != 0) return out;
  for (auto* item = list; item != nullptr; item = item->ifa_next) {
    if (item->ifa_addr == nullptr || item->ifa_addr->sa_family != AF_INET ||
        (item->ifa_flags & IFF_LOOPBACK) != 0)
      continue;
    if (std::string_view(item->ifa_name).starts_with("mstr") ||
        std::string_view(item->ifa_name).starts_with("cni") ||
        std::string_view(item->ifa_name).starts_with("docker"))
      continue;
    char text[INET_ADDRSTRLEN] = {};
    inet_ntop(
        AF_INET, &reinterpret_cast<sockaddr_in*>(item->ifa_addr)->sin_addr, text, sizeof text);
    out = text;
    break;
  }
  freeifaddrs(list);
  return out;
}

/// As many processes and threads as the kernel gives numbers to.
std::int64_t machine_pids_max() {
  constexpr std::int64_t kUsual = 32768;
  return std::max(parse_int(trim(read_file("/proc/sys/kernel/pid_max"))).value_or(kUsual), kUsual);
}

class AgentImpl final : public Agent {
 public:
  AgentImpl(net::Loop& loop, client::Client& client, AgentOptions options)
      : loop_(loop),
        options_(std::move(options)),
        images_(ImageFile::load(options_.images_file)),
        informers_(loop, client),
        runtime_(std::make_unique<Runtimes>(
            loop, process::make_process_runtime(loop, runtime_options()))),
        context_{loop,
                 client,
                 informers_,
                 *runtime_,
                 options_.directory,
                 machine_address(),
                 options_.api_address,
                 options_.api_port},
        keeper_(context_),
        hollow_(context_.loop, context_.client, context_.host_ip) {
    context_.node_cpu_milli = std::max(1U, std::thread::hardware_concurrency()) * 1000LL;
    context_.node_memory_bytes =
        static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
    context_.events_of = [this](const std::string& node) -> client::EventRecorder& {
      return events_of(node);
    };
    context_.resolv_conf = [this](const json::Value& pod) {
      return resolv_conf(pod, dns_ ? runtime_->gateway() : "", read_file("/etc/resolv.conf"));
    };
    context_.sockets = &loop;
    const auto find = [this](const std::string& uid) { return workers_.find(uid); };
    streams_ = make_stream_server(context_, find);
    const auto all = [this] { return workers_.all(); };
    metrics_ = make_pod_metrics(context_, all);
    disk_ = std::make_unique<DiskWatch>(context_, all);
    context_.cdi_folders = options_.cdi_folders;
    context_.pids_max = options_.pids_max > 0 ? options_.pids_max : machine_pids_max() / 2;
  }

  Task<Result<void>> start() override {
    std::error_code error;
    fs::create_directories(options_.directory, error);
    if (error)
      co_return fail(Code::kInternal,
                     fmt::format("make \"{}\": {}", options_.directory, error.message()));
    if (!options_.hidden.empty()) context_.hidden = fs::canonical(options_.hidden, error).string();
    if (!images_) co_return fail(images_.error());
    context_.images = *images_;
    if (!options_.hollow) {
      remove_orphaned_run_directories();
      const auto placed = prepare_run_directory(options_.directory + "/run");
      if (!placed) co_return placed;
      const auto began = co_await start_runtime();
      if (!began) co_return began;
      const auto sourced = co_await start_images();
      if (!sourced) co_return sourced;
      const auto led = co_await start_cri();
      if (!led) co_return led;
    }
    if (runtime_->translates_addresses()) {
      const auto api = api_reachable_ ? runtime_->gateway() : std::string();
      services_ = std::make_unique<Services>(context_, api, options_.api_port);
      policies_ = std::make_unique<NetworkPolicies>(context_, [this] { return addressed_pods(); });
      policies_->follow();
      context_.in_force = [this] { return policies_->in_force(); };
    }
    follow();
    informers_.start_all();
    co_await informers_.wait_synced();
    if (policies_) policies_->begin();
    co_await workers_.remove_orphans();
    if (image_source_) co_await make_class(kHostClass);
    if (context_.has_cri) co_await make_class(kCriClass);
    keeper_.start();
    if (!options_.hollow) disk_->start();
    co_return Result<void>();
  }

  Task<void> stop(bool remove_pods) override {
    stopping_ = true;
    co_await disk_->stop();
    co_await keeper_.stop();
    co_await hollow_.stop();
    co_await workers_.settle(kLastWords);
    const auto uids = workers_.detach_all();
    context_.start_slots.close();
    context_.status_slots.close();
    context_.removal_slots.close();
    if (remove_pods && !options_.hollow) {
      for (const auto& uid : uids) (void)co_await runtime_->remove_sandbox(uid);
    }
    if (dns_) dns_->stop();
    if (services_) services_->stop();
    if (policies_) policies_->stop();
    api_proxy_.reset();
    co_await informers_.stop_all();
    for (auto& [node, recorder] : recorders_) co_await recorder->flush();
    if (options_.hollow) co_return;
    // Pods whose removal is under way are the container runtime's, which ends with its images.
    co_await runtime_->stop(/*clean=*/remove_pods);
    if (image_source_) co_await image_source_->stop(/*clean=*/remove_pods);
    if (remove_pods) remove_run_directory(options_.directory + "/run");
  }

  PodStreamServer& streams() override { return *streams_; }
  Metrics& metrics() override { return *metrics_; }
  Task<std::optional<std::string>> former_log(std::string pod_uid,
                                              std::string container,
                                              std::size_t bytes_max) override {
    std::optional<std::string> text;
    std::function<void()> work = [&] {
      text = former_logs(options_.directory).read(pod_uid, container, bytes_max);
    };
    co_await loop_.run_on_worker(std::move(work));
    co_return text;
  }
  std::vector<std::string> shortcomings() const override { return runtime_->shortcomings(); }
  bool filters_traffic() const override { return policies_ != nullptr; }

 private:
  process::ProcessRuntimeOptions runtime_options() const {
    process::ProcessRuntimeOptions out;
    out.directory = options_.directory;
    out.shim_binary = options_.shim_binary.empty() ? fs::read_symlink("/proc/self/exe").string()
                                                   : options_.shim_binary;
    out.isolate = options_.isolate;
    out.map_users = options_.map_users;
    out.hidden = options_.hidden;
    if (images_) out.show = images_->host.show;
    if (images_) out.hide = images_->host.hide;
    out.images = image_source() != "none";
    return out;
  }

  /// As the flag says, or the image file.
  std::string image_source() const {
    auto source = options_.image_source;
    if (source.empty() && images_) source = images_->source;
    if (source.empty() && options_.runtime == kCriClass) source = "containerd";
    return source.empty() ? "none" : source;
  }

  Task<Result<void>> start_images() {
    image::SourceOptions wanted;
    wanted.source = image_source();
    const auto known = image::check_source(wanted.source);
    if (!known) co_return known;
    if (wanted.source == "none") co_return Result<void>();
    if (geteuid() != 0 || !runtime_->hides_devices())
      co_return fail(Code::kForbidden,
                     "images need root: an image is mounted as a container's own files; run muster "
                     "as root, or pods on this machine's files with --image-source none");
    wanted.directory = options_.image_directory;
    wanted.archives = options_.archives;
    wanted.parallel_pulls_max = options_.parallel_pulls_max;
    if (cri::cri_missing().empty()) wanted.pods = pod_support();
    wanted.registries = context_.images.registries;
    wanted.collection = context_.images.collection;
    wanted.in_use = [this] { return images_in_use(); };
    wanted.on_change = [this] { keeper_.report_again(); };
    image_source_ = std::make_unique<image::ImageSource>(loop_, std::move(wanted));
    context_.image_source = image_source_.get();
    const auto started = co_await image_source_->start();
    co_return started;
  }

  image::PodSupport pod_support() const {
    const auto saved = json::parse(read_file(options_.directory + "/network.json"));
    if (!saved) return {};  // pods have no network of their own here
    const cri::Bridge bridge{json::text_at(*saved, "bridge"),
                             static_cast<std::uint32_t>(json::int_at(*saved, "base"))};
    return {cri::plugin_folder(),
            cri::network_list(bridge, options_.image_directory + "/addresses"),
            cri::kPauseImage};
  }

  /// A container runtime for pods that ask for it, or for all. Without --runtime cri it is a
  /// possibility that nobody waits for, unless an earlier run left pods with it.
  Task<Result<void>> start_cri() {
    const bool wanted = options_.runtime == kCriClass;
    const auto missing = !image_source_         ? "there is no image source"
                         : image_source_->own() ? cri::cri_missing()
                                                : std::string();
    if (!missing.empty() && wanted)
      co_return fail(Code::kUnavailable, fmt::format("--runtime cri: {}", missing));
    if (!missing.empty()) co_return Result<void>();
    context_.has_cri = true;
    context_.prefers_cri = wanted;
    context_.foreign_cri = !image_source_->own();
    if (wanted) runtime_->prefer_cri();
    cri::CriOptions options;
    options.socket = image_source_->socket();
    options.directory = options_.directory;
    options.hidden = context_.hidden;
    options.own = image_source_->own();
    auto runtime = cri::make_cri_runtime(loop_, std::move(options));
    if (!wanted && !fs::exists(cri::mark_of(options_.directory))) {
      loop_.spawn(lead_beside(std::move(runtime)));
      co_return Result<void>();
    }
    auto found = co_await runtime_->add_cri(std::move(runtime));
    if (!found) co_return fail(found.error());
    workers_.adopt(std::move(*found));
    co_return Result<void>();
  }

  Task<void> lead_beside(std::unique_ptr<Runtime> runtime) {
    const auto found = co_await runtime_->add_cri(std::move(runtime));
    if (!found)
      log::warn("agent", "pods of class \"{}\" cannot run: {}", kCriClass, found.error().message);
  }

  /// Names and digests, of containers that run and of those that are about to.
  std::set<std::string> images_in_use() const {
    std::set<std::string> out;
    for (const auto& worker : workers_.all()) {
      const auto& state = worker->state();
      for (const auto* records : {&state.inits, &state.containers, &state.ephemerals}) {
        for (const auto& record : *records) {
          out.insert(record.image_name);
          out.insert(record.image_id);
          if (record.image) out.insert(record.image->name);
        }
      }
    }
    return out;
  }

  /// Pods name the class, and it names what they get (runtime_choice.h).
  Task<void> make_class(std::string name) {
    const auto classes = runtime_class_resource();
    json::Value made = json::Object{{"apiVersion", classes.api_version()},
                                    {"kind", classes.kind},
                                    {"metadata", json::Object{{"name", name}}},
                                    {"handler", name}};
    const auto created = co_await context_.client.create(classes, "", std::move(made));
    if (!created && created.error().code != Code::kAlreadyExists)
      log::warn("agent", "RuntimeClass {}: {}", name, created.error().message);
  }

  Task<Result<void>> start_runtime() {
    const auto on_event = [this](const RuntimeEvent& event) { workers_.on_event(event); };
    auto found = co_await runtime_->start(on_event);
    if (!found) co_return fail(found.error());
    workers_.adopt(std::move(*found));
    if (workers_.adopted() > 0)
      log::info("agent", "found {} pods of an earlier run", workers_.adopted());
    for (const auto& line : runtime_->shortcomings()) log::warn("agent", "{}", line);
    if (runtime_->hides_devices()) {
      std::vector<Gpu> gpus;
      const auto look = [&gpus, this] { gpus = find_gpus(context_.cdi_folders); };
      co_await loop_.run_on_worker(look);
      for (const auto& gpu : gpus) context_.machine_gpus[gpu.index] = gpu;
    }
    serve_pods();
    co_return Result<void>();
  }

  /// How long an agent that ends writes what has happened to pods. How one ended is nowhere else once it
  /// is removed from this machine.
  static constexpr Duration kLastWords = std::chrono::seconds(3);

  // As the API server has it from its first start, and in its certificate.
  static constexpr auto kApiServiceAddress = "10.96.0.1";
  static constexpr int kApiServicePort = 443;

  /// What pods in a network of their own need from this machine: names, and a way to the API
  /// server.
  void serve_pods() {
    const auto gateway = runtime_->gateway();
    if (gateway.empty()) return;
    auto dns = std::make_unique<Dns>(context_, gateway);
    const auto serving = dns->start();
    if (!serving) {
      log::warn("agent", "{}", serving.error().message);
    } else {
      dns_ = std::move(dns);
    }
    if (options_.api_port == 0) return;
    ProxyPorts ports;
    ports.listen_address = gateway;
    ports.listen_port = options_.api_port;
    ports.target_address = options_.api_address;
    ports.target_port = options_.api_port;
    api_proxy_ = std::make_unique<TcpProxy>(loop_);
    const auto proxied = api_proxy_->start(std::move(ports));
    if (!proxied) log::warn("agent", "pods cannot reach the API: {}", proxied.error().message);
    if (!proxied) return;
    if (runtime_->translates_addresses()) {
      context_.api_host = kApiServiceAddress;
      context_.api_port = kApiServicePort;
      api_reachable_ = true;
    } else if (dns_) {
      // A name, because the server's certificate knows names, not the address of this bridge.
      context_.api_host = "kubernetes.default.svc";
    }
  }

  std::vector<AddressedPod> addressed_pods() const {
    std::vector<AddressedPod> out;
    for (const auto& worker : workers_.all()) {
      const auto& address = worker->state().pod_ip;
      if (!address.empty() && address != context_.host_ip && !worker->ended())
        out.push_back({worker->pod(), address});
    }
    return out;
  }

  client::EventRecorder& events_of(const std::string& node) {
    auto& recorder = recorders_[node];
    if (recorder) return *recorder;
    recorder = client::make_event_recorder(loop_, context_.client, "kubelet", node);
    recorder->hold_while([this] { return context_.starting > 0; });
    return *recorder;
  }

  // ----------------------------------------------------------------------------- what the API says

  void follow() {
    namespace res = client::resources;
    client::InformerHandlers nodes;
    nodes.on_change = [this](const ObjectPtr& before, const ObjectPtr& after) {
      node_changed(before, after);
    };
    informers_.get(res::kNodes).add_handlers(std::move(nodes));
    client::InformerHandlers pods;
    pods.on_change = [this](const ObjectPtr& before, const ObjectPtr& after) {
      pod_changed(before, after);
    };
    informers_.get(res::kPods).add_handlers(std::move(pods));
    for (const auto* resource : {&res::kServices, &res::kEndpoints}) {
      client::InformerHandlers moved;
      moved.on_change = [this](const ObjectPtr&, const ObjectPtr&) {
        if (services_) services_->changed();
      };
      informers_.get(*resource).add_handlers(std::move(moved));
    }
    for (const auto& [resource, plural] :
         {std::pair(&res::kConfigMaps, "configmaps"), {&res::kSecrets, "secrets"}}) {
      client::InformerHandlers objects;
      objects.on_change = [this, kind = std::string(plural)](const ObjectPtr& before,
                                                             const ObjectPtr& after) {
        if (before && after) workers_.object_changed(kind, *after);
      };
      informers_.get(*resource).add_handlers(std::move(objects));
    }
  }

  enum class NodeKind { kForeign, kProcess, kHollow };
  NodeKind kind_of(const json::Value& node) const {
    const bool hollow = kube::annotation(node, kube::names::kHollow) == "true";
    const bool own = kube::label(node, kube::names::kVirtual) == "true";
    if (!hollow && !own) return NodeKind::kForeign;
    return hollow || options_.hollow ? NodeKind::kHollow : NodeKind::kProcess;
  }

  void node_changed(const ObjectPtr& before, const ObjectPtr& after) {
    if (!after) {
      const std::string gone(kube::name_of(*before));
      nodes_.erase(gone);
      keeper_.remove(gone);
      return;
    }
    const std::string name(kube::name_of(*after));
    const auto kind = kind_of(*after);
    const auto old = nodes_.find(name) == nodes_.end() ? NodeKind::kForeign : nodes_[name];
    const auto gpus = parse_int(json::string_at(*after, "status", "capacity", "nvidia.com/gpu"));
    context_.gpus.set_count(name, static_cast<int>(gpus.value_or(0)));
    if (kind == old) return;
    nodes_[name] = kind;
    if (kind == NodeKind::kProcess) keeper_.add(name);
    // Pods may have been seen before their node; there are few nodes that appear late.
    if (informers_.get(client::resources::kPods).objects().empty()) return;
    for (const auto& [key, pod] : informers_.get(client::resources::kPods).objects()) {
      if (json::string_at(*pod, "spec", "nodeName") == name) pod_changed(nullptr, pod);
    }
  }

  void pod_changed(const ObjectPtr& before, const ObjectPtr& after) {
    if (stopping_) return;
    if (before && (!after || kube::uid_of(*before) != kube::uid_of(*after)))
      pod_removed(std::string(kube::uid_of(*before)));
    if (!after) return;
    const auto node = json::text_at(*after, "spec", "nodeName");
    if (node.empty()) return;
    const auto found = nodes_.find(node);
    if (found == nodes_.end() || found->second == NodeKind::kForeign) return;
    if (found->second == NodeKind::kHollow) {
      hollow_.update(after);
      return;
    }
    workers_.update(after);
    if (policies_ && before &&
        (json::at(*before, "metadata", "labels") != json::at(*after, "metadata", "labels") ||
         kube::pod_finished(*before) != kube::pod_finished(*after)))
      policies_->changed();
  }

  void pod_removed(const std::string& uid) {
    hollow_.removed(uid);
    workers_.removed(uid);
  }

  net::Loop& loop_;
  AgentOptions options_;
  Result<ImageFile> images_;
  client::Informers informers_;
  std::unique_ptr<Runtimes> runtime_;
  Context context_;
  NodeKeeper keeper_;
  HollowPods hollow_;
  std::map<std::string, NodeKind> nodes_;
  PodWorkers workers_{context_, [this] {
                        if (policies_) policies_->changed();
                      }};
  std::map<std::string, std::unique_ptr<client::EventRecorder>> recorders_;
  std::unique_ptr<Dns> dns_;
  std::unique_ptr<Services> services_;         // null: names lead to endpoints
  std::unique_ptr<NetworkPolicies> policies_;  // null: traffic cannot be filtered here
  bool api_reachable_ = false;                 // through the bridge
  std::unique_ptr<TcpProxy> api_proxy_;
  std::unique_ptr<PodStreamServer> streams_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<DiskWatch> disk_;
  std::unique_ptr<image::ImageSource> image_source_;  // null: none
  bool stopping_ = false;
};

}  // namespace

std::unique_ptr<Agent> make_agent(net::Loop& loop, client::Client& client, AgentOptions options) {
  return std::make_unique<AgentImpl>(loop, client, std::move(options));
}

}  // namespace muster::agent
