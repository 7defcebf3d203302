// What `concord plan` has predicted: as a table and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "concord/plan/prediction.hpp"

namespace concord::cli {

/// A link, and how well it explains the measured exchanges that it was fitted to.
struct KnownLink {
  plan::Link link;
  double sum_per_byte = 0;
  std::optional<double> error;  // the largest deviation, as a part; empty if the user gave the link
};

struct PlanReport {
  std::string network;
  const plan::RecordedStep& step;
  plan::Setting setting;  // of the last prediction
  std::optional<KnownLink> inside, between;
  std::vector<plan::Prediction> predictions = {};  // by ranks
  std::size_t best_bucket = 0;                     // for the most ranks
  plan::Prediction best = {};                      // with it
};

[[nodiscard]] std::string plan_table(const PlanReport& report);
[[nodiscard]] nlohmann::ordered_json plan_json(const PlanReport& report);

}  // namespace concord::cli
