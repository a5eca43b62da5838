/// What a training job leaves behind, taken away with the operator's events.
#pragma once

#include "controllers/common/training/pass.h"

namespace muster::controllers {

/// Deletes a pod (nothing if it is already going).
void delete_pod(Plan& plan, const json::Value& pod);
/// Deletes pods, each with its service, by the clean-pod policy ("" : all).
void delete_pods_and_services(Pass& pass, std::string_view policy);
/// `entering`: say so even if there is no group to delete any more.
void delete_podgroup(Pass& pass, bool entering);
/// Brings a stuck terminating pod to an end and says when to look again.
void force_delete_stuck(Plan& plan, const Objects& pods, const Settings& settings, Time now);
/// The plan is made again after `delay` at the latest.
void wake_after(Plan& plan, Duration delay);

}  // namespace muster::controllers
