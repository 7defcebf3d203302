// A fit as a comparison.
#include "concord/compare/run/compared_fit.hpp"

#include <algorithm>

#include "concord/compare/report/request.hpp"
#include "concord/compare/run/batches.hpp"
#include "concord/compare/run/training_step.hpp"
#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/timeline.hpp"
#include "concord/train/fit_hook.hpp"

namespace concord {
namespace {

using train::FitTask;

std::int64_t batch_of(const FitTask& task) {
  return task.data.size() > 0 ? std::min(task.fit.batch, task.data.size()) : task.fit.batch;
}

CompareReply answer_comparison(const CompareRequest& request, const FitTask& task) {
  keep_freed_memory();  // every value of a network passes through the host, again and again
  CompareOptions options = request.options;
  options.batch = batch_of(task);
  options.seed = task.trainer.seed;
  options.groups = task.trainer.groups;
  options.clip = task.trainer.clip;
  options.precision = task.trainer.precision;
  std::vector<DevicePtr> devices;
  for (const std::string& selector : request.devices) devices.push_back(Device::open(selector));
  const std::string& name = task.trainer.network;
  const Comparison comparison = compare(task.network, name.empty() ? request.name : name, task.objective,
                                        task.optimizer, task.data, devices, options);
  request.outputs.write_files(comparison, request.network);
  return {request.outputs.text(comparison), CompareOutputs::error(comparison)};
}

CompareReply answer_replay(const CompareRequest& request, const FitTask& task) {
  CONCORD_CHECK(task.fit.batch > 0, ArgumentError, "the batch must be at least 1, got {}", task.fit.batch);
  const OperatorCase operator_case = read_case(request.replayed_case);
  const Batches batches(task.data, batch_of(task), task.trainer.seed);
  const TrainingStep step(task.network, task.objective, task.optimizer,
                          {.clip = task.trainer.clip, .groups = task.trainer.groups}, task.trainer.precision,
                          batches.source(), batches.batch());
  data::check(task.data, step.ignored);
  const DevicePtr device = Device::open(request.devices.at(0));
  const CaseReplay result = replay(operator_case, step.graph, step.loss, device, step.precision);
  return {result.json(operator_case, device->info()), result.diverging(operator_case, device->info())};
}

bool compare_if_asked(const FitTask& task) {
  const auto request = CompareRequest::of_environment();
  if (!request) return false;
  CompareReply reply;
  try {
    timeline::record(request->trace_file, [&] {
      reply = (request->replayed_case.empty() ? answer_comparison : answer_replay)(*request, task);
    });
  } catch (const std::exception& error) {
    reply.error = error.what();
    reply.is_wrong_use = dynamic_cast<const ArgumentError*>(&error) != nullptr;
  }
  request->answer(reply);
  return true;
}

[[maybe_unused]] const bool is_installed = (compare_fits_on_request(), true);

}  // namespace

void compare_fits_on_request() { train::fit_hook = compare_if_asked; }

}  // namespace concord
