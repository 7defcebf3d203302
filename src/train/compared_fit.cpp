// A fit as a comparison.
#include "concord/train/compared_fit.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "concord/compare/request.hpp"
#include "concord/core/platform.hpp"

namespace concord::train {
namespace {

/// What the command waits for.
void announce(int channel) {
  const char byte = 1;
  if (channel >= 0 && ::write(channel, &byte, 1) == 1) ::close(channel);
}

void compare(const CompareRequest& request, const TrainerState& state, const Dataset& data, const FitOptions& fit) {
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
  request.outputs.give(concord::compare(*state.recipe.network, name.empty() ? request.name : name, state.recipe.loss,
                                        state.recipe.optimizer, data, devices, options));
}

}  // namespace

void compare_if_asked(const TrainerState& state, const Dataset& data, const FitOptions& options) {
  const auto request = CompareRequest::of_environment();
  if (!request) return;
  announce(request->channel);
  int code = EXIT_SUCCESS;
  try {
    compare(*request, state, data, options);
  } catch (const Error& error) {
    std::cerr << request->name << ": " << error.what() << "\n";
    code = EXIT_FAILURE;
  }
  std::exit(code);
}

}  // namespace concord::train
