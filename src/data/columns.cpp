// Data sets of columns.
#include "concord/data/columns.hpp"

#include <iterator>
#include <utility>

#include "concord/core/check.hpp"

namespace concord::data {

Dataset from_columns(std::vector<Column> features, std::vector<Column> labels) {
  CONCORD_CHECK(!features.empty() && !labels.empty(), ArgumentError,
                "a data set needs a column of features and a column of labels, got {} and {}", features.size(),
                labels.size());
  Dataset dataset = joined(std::move(features), std::move(labels));
  dataset.name = "columns";
  check(dataset);
  return dataset;
}

Dataset joined(std::vector<Column> features, std::vector<Column> labels) {
  Dataset dataset;
  dataset.features = features[0].values;
  dataset.feature_name = std::move(features[0].name);
  dataset.scale = features[0].scale;
  dataset.shift = features[0].shift;
  dataset.mean = std::move(features[0].mean);
  dataset.deviation = std::move(features[0].deviation);
  dataset.more_features.assign(std::next(features.begin()), features.end());
  if (labels.empty()) return dataset;
  dataset.labels = labels[0].values;
  dataset.label_name = std::move(labels[0].name);
  dataset.classes = labels[0].classes;
  dataset.more_labels.assign(std::next(labels.begin()), labels.end());
  return dataset;
}

}  // namespace concord::data
