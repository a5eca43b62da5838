#include "portal/cluster/events.h"

#include "answers/jobs/facts.h"
#include "kube/meta.h"

namespace muster::portal {

EventFacts event_facts(const json::Value& event) {
  EventFacts facts;
  const json::Value& about = json::at(event, "involvedObject");
  facts.id = kube::uid_of(event);
  facts.type = json::text_at(event, "type");
  facts.reason = json::text_at(event, "reason");
  facts.message = json::text_at(event, "message").substr(0, 1024);
  facts.kind = json::text_at(about, "kind");
  facts.ns = json::text_at(about, "namespace");
  facts.name = json::text_at(about, "name");
  facts.uid = json::text_at(about, "uid");
  facts.node = facts.kind == "Node" ? facts.name : json::text_at(event, "source", "host");
  facts.source = json::text_at(event, "source", "component");
  if (facts.source.empty()) facts.source = json::text_at(event, "reportingComponent");
  facts.count = std::max<std::int64_t>(1, json::int_at(event, "count"));
  for (const char* key : {"lastTimestamp", "eventTime", "firstTimestamp"}) {
    if (facts.at == 0) facts.at = millis_at(json::at(event, key));
  }
  if (facts.at == 0) facts.at = kube::creation_time(event).us / 1000;
  facts.first = millis_at(json::at(event, "firstTimestamp"));
  if (facts.first == 0) facts.first = facts.at;
  return facts;
}

void Events::begin() {
  if (begun_) return;
  begun_ = true;
  client::Informer& informer = informers_.get(client::resources::kEvents);
  informer.add_handlers(
      {[this](const client::ObjectPtr& old_object, const client::ObjectPtr& new_object) {
         const std::string id(kube::uid_of(new_object ? *new_object : *old_object));
         if (const auto known = times_.find(id); known != times_.end()) {
           events_.erase({known->second, id});
           times_.erase(known);
         }
         ++version_;
         if (new_object) {
           EventFacts facts = event_facts(*new_object);
           facts.version = version_;
           if (on_warning && facts.type == "Warning" && facts.kind == "Pod") on_warning(facts);
           times_[id] = facts.at;
           events_.emplace(std::pair(facts.at, id), std::move(facts));
           if (events_.size() > kMax) {
             times_.erase(events_.begin()->first.second);
             events_.erase(events_.begin());
           }
         }
         if (on_change) on_change();
       },
       {}});
  informer.start();
}

}  // namespace muster::portal
