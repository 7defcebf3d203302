// ResidentSets: the data sets of a trainer that lie on its device. Internal to the room.
#pragma once

#include <list>
#include <string>
#include <vector>

#include "concord/train/programs.hpp"
#include "concord/train/source.hpp"

namespace concord::train {

/// The few sets used last; together they take no more than a part of the device's memory.
class ResidentSets {
 public:
  /// The programs read the sets; they must outlive this.
  ResidentSets(VariablesPtr variables, double fraction, Programs& programs)
      : variables_(std::move(variables)), fraction_(fraction), programs_(programs) {}

  [[nodiscard]] bool contains(const Samples& samples) const;
  /// On the device if the samples are in memory and all of their data set fits, or is there already; else streamed.
  [[nodiscard]] Source source_of(const Samples& samples);
  /// The same to train on: images in memory that only change in ways of image_changes.hpp stay on the device too.
  [[nodiscard]] Source training_source_of(const Samples& samples);
  /// The same for images that data::PixelMoves move.
  [[nodiscard]] Source moved_source_of(const Samples& samples);
  /// The set of this id stays, until another one is to stay; empty: none.
  void keep(std::string id) { kept_ = std::move(id); }

 private:
  struct Resident {
    std::string id;
    DeviceCopies::Copy copy;
    std::vector<std::string> variables;  // one for each column
    [[nodiscard]] bool holds(const Dataset& dataset) const;
  };
  /// `samples` are read where the data set does not fit.
  [[nodiscard]] Source source_in_memory(const Dataset& dataset, const Samples& samples);
  [[nodiscard]] bool fits(const Dataset& dataset) const;
  void make_room();

  VariablesPtr variables_;
  double fraction_;
  Programs& programs_;
  std::list<Resident> sets_;  // the last used first
  std::int64_t seen_ = 0;
  std::string kept_;
};

}  // namespace concord::train
