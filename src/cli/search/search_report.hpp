// What a search has found: as a table, as JSON, and as a page.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "concord/cli/search/trial_training.hpp"
#include "concord/search/space.hpp"
#include "concord/search/study.hpp"

namespace concord::cli {

struct SearchReport {
  std::string network, data, scheduler;
  const search::Space& space;
  const search::Study& study;
  SearchMonitor monitor = SearchMonitor::loss;
  std::size_t uploaded_bytes = 0;
  double seconds = 0;  // of this process

  [[nodiscard]] double metric_of(const search::EpochPoint& point) const {
    return monitor == SearchMonitor::loss ? point.loss : point.accuracy.value_or(0);
  }
  [[nodiscard]] const char* metric_name() const { return monitor == SearchMonitor::loss ? "loss" : "accuracy"; }
};

/// The settings that differ between trials: "lr=0.01 batch=32".
[[nodiscard]] std::string settings_text(const search::Settings& settings);
/// The best trials, then how many there are and the reasons of those that failed.
[[nodiscard]] std::string search_table(const SearchReport& report);
[[nodiscard]] nlohmann::ordered_json search_json(const SearchReport& report);
/// One HTML page without scripts: parallel coordinates, curves, and a table of all trials.
[[nodiscard]] std::string search_page(const SearchReport& report);

}  // namespace concord::cli
