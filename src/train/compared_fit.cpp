// A fit as a comparison.
#include "concord/train/compared_fit.hpp"

#include <algorithm>
#include <cstdlib>

#include "concord/compare/report/request.hpp"
#include "concord/compare/run/batches.hpp"
#include "concord/compare/run/training_step.hpp"
#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/timeline.hpp"

namespace concord::train {
namespace {

std::int64_t batch_of(const Dataset& data, const FitOptions& fit) {
  return data.size() > 0 ? std::min(fit.batch, data.size()) : fit.batch;
}

Comparison compared(const CompareRequest& request, const TrainerState& state, const Dataset& data,
                    const FitOptions& fit) {
  state.check(data);
  keep_freed_memory();  // every value of a network passes through the host, again and again
  CompareOptions options = request.options;
  options.batch = batch_of(data, fit);
  options.seed = state.options.seed;
  options.groups = state.options.groups;
  options.clip = state.options.clip;
  options.precision = state.options.precision;
  std::vector<DevicePtr> devices;
  for (const std::string& selector : request.devices) devices.push_back(Device::open(selector));
  const std::string& name = state.options.network;
  return compare(*state.recipe.network, name.empty() ? request.name : name, state.recipe.loss, state.recipe.optimizer,
                 data, devices, options);
}

CompareReply answer_comparison(const CompareRequest& request, const TrainerState& state, const Dataset& data,
                               const FitOptions& fit) {
  const Comparison comparison = compared(request, state, data, fit);
  request.outputs.write_files(comparison, request.network);
  return {request.outputs.text(comparison), CompareOutputs::error(comparison)};
}

CompareReply answer_replay(const CompareRequest& request, const TrainerState& state, const Dataset& data,
                           const FitOptions& fit) {
  state.check(data);
  CONCORD_CHECK(fit.batch > 0, ArgumentError, "the batch must be at least 1, got {}", fit.batch);
  const OperatorCase operator_case = read_case(request.replayed_case);
  const Batches batches(data, batch_of(data, fit), state.options.seed);
  const TrainingStep step(*state.recipe.network, state.recipe.loss, state.recipe.optimizer,
                          {.clip = state.options.clip, .groups = state.options.groups}, state.options.precision,
                          batches.features(), batches.labels(), data.classes);
  const DevicePtr device = Device::open(request.devices.at(0));
  const CaseReplay result = replay(operator_case, step.graph, step.loss, device, step.precision);
  return {result.json(operator_case, device->info()), result.diverging(operator_case, device->info())};
}

}  // namespace

void compare_if_asked(const TrainerState& state, const Dataset& data, const FitOptions& options) {
  const auto request = CompareRequest::of_environment();
  if (!request) return;
  CompareReply reply;
  try {
    timeline::record(request->trace_file, [&] {
      reply = (request->replayed_case.empty() ? answer_comparison : answer_replay)(*request, state, data, options);
    });
  } catch (const std::exception& error) {
    reply.error = error.what();
    reply.is_wrong_use = dynamic_cast<const ArgumentError*>(&error) != nullptr;
  }
  request->answer(reply);
  std::exit(reply.error.empty() ? EXIT_SUCCESS : EXIT_FAILURE);
}

}  // namespace concord::train
