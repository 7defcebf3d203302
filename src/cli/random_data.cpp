// Random data: features of the network's type, targets of its task.
#include "concord/cli/random_data.hpp"

#include <algorithm>

#include "concord/cli/label_outputs.hpp"
#include "concord/cli/model_file.hpp"
#include "concord/core/philox.hpp"

namespace concord::cli {
namespace {

class Noise {
 public:
  Noise(std::uint64_t seed, std::string_view purpose) : words_(Philox(seed, philox_purpose(purpose))) {}

  /// Whole numbers in [first, end).
  void fill(std::span<std::int32_t> values, std::int32_t first, std::int32_t end) {
    for (std::int32_t& value : values) {
      value = first + static_cast<std::int32_t>(words_.below(static_cast<std::uint32_t>(end - first)));
    }
  }
  [[nodiscard]] std::int32_t number(std::int32_t end) {
    return static_cast<std::int32_t>(words_.below(static_cast<std::uint32_t>(end)));
  }
  /// Numbers in [low, low + 1).
  void fill(std::span<float> values, float low) {
    for (float& value : values) value = low + static_cast<float>(words_.next() >> 8) * 0x1p-24F;
  }

 private:
  PhiloxSequence words_;
};

/// The columns of the model's batches.
train::Source columns_of(const models::Model& model, const Shape& sample) {
  const auto network = model.make({.classes = model.classes, .input = sample});  // also of one that has no name
  return source_of(model, *network, sample);
}

/// Rows of probabilities and, last in each, a value in [-1/2, 1/2).
void fill_policy(Noise& noise, Tensor& target) {
  const auto width = static_cast<std::size_t>(target.shape()[1]);
  for (std::size_t row = 0; row < static_cast<std::size_t>(target.shape()[0]); ++row) {
    const auto values = target.values<float>().subspan(row * width, width);
    noise.fill(values.last(1), -0.5F);
    const auto moves = values.first(width - 1);
    noise.fill(moves, 0);
    float sum = 0;
    for (const float move : moves) sum += move;
    for (float& move : moves) move /= sum;
  }
}

/// Rows of words (N, T) and what follows each: seven times of eight the one after it in a fixed order of all words.
void fill_words(Noise& noise, const std::vector<std::int32_t>& order, Tensor& features, Tensor& target) {
  std::vector<std::int32_t> after(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    after[static_cast<std::size_t>(order[i])] = order[(i + 1) % order.size()];
  }
  const auto words = features.values<std::int32_t>(), next = target.values<std::int32_t>();
  const auto length = static_cast<std::size_t>(features.shape()[1]);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i % length == 0) words[i] = noise.number(static_cast<std::int32_t>(order.size()));
    next[i] = noise.number(8) > 0 ? after[static_cast<std::size_t>(words[i])]
                                  : noise.number(static_cast<std::int32_t>(order.size()));
    if (i % length + 1 < length) words[i + 1] = next[i];
  }
}

/// The class of each pixel by the brightness of the first channel, which lies in [-1/2, 1/2).
void fill_by_brightness(const Tensor& features, int classes, Tensor& target) {
  const auto pixels = static_cast<std::size_t>(features.shape()[2] * features.shape()[3]);
  const auto image = static_cast<std::size_t>(features.shape()[1]) * pixels;
  const auto values = features.values<float>();
  const auto labels = target.values<std::int32_t>();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const float bright = values[i / pixels * image + i % pixels] + 0.5F;
    labels[i] = std::clamp(static_cast<std::int32_t>(bright * static_cast<float>(classes)), 0, classes - 1);
  }
}

/// Every other sample is real (1), and a quarter brighter than the mean; the others are that much darker.
void fill_real(Tensor& features, Tensor& target) {
  const auto samples = static_cast<std::size_t>(features.shape()[0]);
  const auto values = features.values<float>(), real = target.values<float>();
  const std::size_t size = values.size() / samples, targets = real.size() / samples;
  for (std::size_t i = 0; i < values.size(); ++i) values[i] += i / size % 2 == 1 ? 0.25F : -0.25F;
  for (std::size_t i = 0; i < real.size(); ++i) real[i] = i / targets % 2 == 1 ? 1.0F : 0.0F;
}

/// For some tasks changes the features, so that they determine the target.
Tensor random_target(const models::Model& model, Tensor& features, const TensorSpec& spec, std::uint64_t seed) {
  using models::Task;
  Noise noise(seed, "cli.random.target");
  Tensor target(spec);
  const auto dims = spec.shape.dims();
  if (model.task == Task::language && spec.shape == features.shape()) {
    fill_words(noise, data::permutation(model.classes, seed), features, target);
  } else if (model.task == Task::segmentation && std::ranges::equal(dims.last(2), features.shape().dims().last(2))) {
    fill_by_brightness(features, model.classes, target);
  } else if (model.task == Task::discrimination) {
    fill_real(features, target);
  } else if (spec.dtype == DType::i32) {
    const bool has_blank = model.task == Task::transcription;
    noise.fill(target.values<std::int32_t>(), has_blank ? 1 : 0, model.classes);
  } else if (model.task == Task::policy_value) {
    fill_policy(noise, target);
  } else if (model.task == Task::reconstruction && spec == features.spec()) {
    return features;
  } else {
    noise.fill(target.values<float>(), 0);
  }
  return target;
}

/// Numbers in [-1/2, 1/2), words 0 and 1, bytes: any table has a row for them.
Tensor random_column(const ColumnSpec& column, std::int64_t n, Noise& noise) {
  Tensor values(column.spec.dtype, train::with_batch(column.spec.shape, n));
  if (values.dtype() == DType::f32) noise.fill(values.values<float>(), -0.5F);
  if (values.dtype() == DType::i32) noise.fill(values.values<std::int32_t>(), 0, 2);
  if (values.dtype() == DType::u8) {
    for (std::uint8_t& byte : values.values<std::uint8_t>()) byte = static_cast<std::uint8_t>(noise.number(2));
  }
  return values;
}

/// Noise for each input and output of a network in a file.
Dataset random_columns(const models::Model& model, const Shape& sample, std::int64_t n, std::uint64_t seed) {
  const train::Source source = columns_of(model, sample);
  Noise noise(seed, "cli.random.columns");
  std::vector<Column> features, labels;
  // Bytes and flags are inputs as they are.
  for (const ColumnSpec& column : source.features) {
    features.push_back({column.name, random_column(column, n, noise), 0, 1, 0});
  }
  for (const ColumnSpec& column : source.labels) {
    labels.push_back({column.name, random_column(column, n, noise)});
    if (column.spec.dtype == DType::i32 && model.classes > 0) {
      noise.fill(labels.back().values.values<std::int32_t>(), 0, model.classes);
      labels.back().classes = model.classes;
    }
  }
  Dataset dataset = data::from_columns(std::move(features), std::move(labels));
  dataset.name = "random";
  return dataset;
}

/// Features of noise, or with one label those of its classes, and the columns of labels that the encoding has.
Dataset random_rows(const data::CsvEncoding& table, const Shape& sample, std::int64_t n, std::uint64_t seed) {
  const std::vector<LabelOutput> outputs = label_outputs_of(table);
  if (outputs.size() == 1 && outputs[0].has_classes) {
    const auto classes = static_cast<int>(std::ssize(outputs[0].names));
    Dataset dataset = data::synthetic(sample, static_cast<int>(std::clamp<std::int64_t>(n / 8, 1, classes)), n, seed);
    dataset.classes = classes;
    return dataset;
  }
  Noise noise(seed, "cli.random.rows");
  std::vector<Column> labels;
  for (const LabelOutput& output : outputs) {
    const auto width = static_cast<std::int64_t>(output.names.size());
    Column& column = labels.emplace_back();
    column.name = output.name;
    if (!output.has_classes) {
      column.values = random_column({{}, {DType::f32, Shape{width}}}, n, noise);
      continue;
    }
    column.values = Tensor(DType::i32, Shape{n});
    column.classes = static_cast<int>(width);
    noise.fill(column.values.values<std::int32_t>(), 0, column.classes);
  }
  Tensor features = random_column({{}, {DType::f32, sample}}, n, noise);
  Dataset dataset = data::from_columns({{{}, std::move(features)}}, std::move(labels));
  dataset.name = "random";
  return dataset;
}

}  // namespace

Shape trained_sample(const models::Model& model, const Trained& trained) {
  if (file_of(model) != nullptr) return published_sample(model);
  if (trained.table) return Shape{std::ssize(trained.table->feature_names())};
  if (trained.audio) return Shape{1, trained.audio->features(), trained.audio->frames()};
  if (trained.preprocessing) {
    const data::ImageTransform how = data::evaluation_of(*trained.preprocessing);
    return Shape{how.channels, how.height, how.width};
  }
  return model.input;
}

Dataset random_data(const models::Model& model, const Trained& trained, const Shape& sample, std::int64_t n,
                    std::uint64_t seed) {
  if (file_of(model) == nullptr && trained.table) return random_rows(*trained.table, sample, n, seed);
  if (file_of(model) != nullptr || trained.classes == 0) return random_data(model, sample, n, seed);
  models::Model trained_model = model;
  trained_model.classes = trained.classes;
  return random_data(trained_model, sample, n, seed);
}

Dataset random_data(const models::Model& model, const Shape& sample, std::int64_t n, std::uint64_t seed) {
  if (file_of(model) != nullptr) return random_columns(model, sample, n, seed);
  if (model.task == models::Task::classification && model.dtype == DType::f32) {
    const auto used = static_cast<int>(std::clamp<std::int64_t>(n / 8, 1, model.classes));
    Dataset dataset = data::synthetic(sample, used, n, seed);
    dataset.classes = model.classes;
    return dataset;
  }
  Tensor features(models::batch_of(model, sample, n));
  Noise noise(seed, "cli.random.features");
  if (model.dtype == DType::i32) {
    noise.fill(features.values<std::int32_t>(), 0, model.classes);
  } else {
    noise.fill(features.values<float>(), -0.5F);
  }
  Dataset dataset;
  dataset.name = "random";
  const TensorSpec target = columns_of(model, sample).labels[0].spec;
  dataset.labels = random_target(model, features, {target.dtype, train::with_batch(target.shape, n)}, seed);
  dataset.features = std::move(features);
  const bool has_labels = model.task == models::Task::classification || model.task == models::Task::language;
  dataset.classes = has_labels ? model.classes : 0;
  return dataset;
}

}  // namespace concord::cli
