// A fit as a comparison.
#include "concord/train/compared_fit.hpp"

#include <algorithm>
#include <cstdlib>

#include "concord/compare/request.hpp"
#include "concord/core/platform.hpp"

namespace concord::train {
namespace {

Comparison compared(const CompareRequest& request, const TrainerState& state, const Dataset& data,
                    const FitOptions& fit) {
  keep_freed_memory();  // every value of a network passes through the host, again and again
  CompareOptions options = request.options;
  options.batch = data.size() > 0 ? std::min(fit.batch, data.size()) : fit.batch;
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

}  // namespace

void compare_if_asked(const TrainerState& state, const Dataset& data, const FitOptions& options) {
  const auto request = CompareRequest::of_environment();
  if (!request) return;
  CompareReply reply;
  try {
    const Comparison comparison = compared(*request, state, data, options);
    reply.text = request->outputs.text(comparison);
    request->outputs.write_files(comparison);
    reply.error = CompareOutputs::error(comparison);
  } catch (const std::exception& error) {
    reply.error = error.what();
  }
  request->answer(reply);
  std::exit(reply.error.empty() ? EXIT_SUCCESS : EXIT_FAILURE);
}

}  // namespace concord::train
