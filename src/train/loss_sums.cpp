// Names and joined values of sums.
#include "concord/train/loss_sums.hpp"

#include <fmt/format.h>

namespace concord::train {
namespace {

std::string numbered(std::string name, std::size_t term) { return term == 0 ? name : fmt::format("{}{}", name, term); }

}  // namespace

std::string loss_sum_name(const std::string& role, std::size_t term) { return numbered(role + ".loss_sum", term); }
std::string loss_weight_name(const std::string& role, std::size_t term) {
  return numbered(role + ".loss_weight", term);
}

std::string role_of_metric(const std::string& name) { return "eval.metric." + name; }

double joined_loss(std::span<const LossTerm::Kind> terms, std::span<const double> sums, std::span<const double> weights,
                   double samples) {
  double loss = 0;
  for (std::size_t t = 0; t < terms.size(); ++t) {
    const bool is_total = terms[t] == LossTerm::Kind::total, is_mean = terms[t] == LossTerm::Kind::mean;
    loss += sums[t] / (is_total ? 1 : is_mean ? samples : weights[t]);
  }
  return loss;
}

}  // namespace concord::train
