// Accuracies of outputs with more dimensions than classes: the classes are where the loss has them.
#include "concord_test.hpp"

using namespace concord;
using namespace concord::test;

namespace {

constexpr int kClasses = 5;

/// Numbers of words (N, T) and a class for each of them, a function of the word.
Dataset places(std::int64_t length) {
  Tensor features(DType::i32, Shape{16, length}), labels(DType::i32, Shape{16, length});
  const auto words = features.values<std::int32_t>(), classes = labels.values<std::int32_t>();
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = static_cast<std::int32_t>(i * i % 7 + i / 3) % kClasses;
    classes[i] = (2 * words[i] + 1) % kClasses;
  }
  return data::from_arrays(std::move(features), std::move(labels), kClasses);
}

/// (N, T) → (N, T, C).
struct ClassesLast : nn::Module {
  nn::Embedding words{kClasses, kClasses};
  Value forward(Value x) override { return words(x); }
};

/// (N, T) → (N, C, T).
struct ClassesSecond : nn::Module {
  nn::Embedding words{kClasses, kClasses};
  Value forward(Value x) override { return transpose(words(x), {0, 2, 1}); }
};

/// Of logits (N, T, C), by rows.
Value loss_of_rows(Value logits, Value target) {
  return loss::cross_entropy(reshape(logits, {-1, kClasses}), reshape(target, {-1}));
}

Value loss_of_transposed(Value logits, Value target) {
  return loss::cross_entropy(transpose(logits, {0, 2, 1}), target);
}

/// Hits by a search for the largest logit on the host, with the classes at `axis`.
double accuracy_of(const Tensor& outputs, const Tensor& labels, std::size_t axis) {
  const auto dims = outputs.shape().dims();
  std::int64_t inner = 1;
  for (std::size_t i = axis + 1; i < dims.size(); ++i) inner *= dims[i];
  const auto step = static_cast<std::size_t>(inner), classes = static_cast<std::size_t>(dims[axis]);
  const auto values = outputs.values<float>();
  const auto wanted = labels.values<std::int32_t>();
  double hits = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::size_t first = i / step * classes * step + i % step;
    std::size_t best = 0;
    for (std::size_t c = 1; c < classes; ++c) {
      if (values[first + c * step] > values[first + best * step]) best = c;
    }
    if (static_cast<std::int32_t>(best) == wanted[i]) ++hits;
  }
  return hits / static_cast<double>(wanted.size());
}

template <typename Net>
void check_accuracy(const DevicePtr& device, const Loss& loss, std::int64_t length, std::size_t axis) {
  const Dataset data = places(length);
  Trainer trainer{Net{}, loss, optim::Adam{.lr = 0.1}, device, {.seed = 2}};
  const auto expected = [&] { return accuracy_of(trainer.predict(data), data.labels, axis); };
  CHECK(*trainer.evaluate(data, {.batch = 5}).accuracy == Approx(expected()));
  trainer.fit(data, {.epochs = 40, .batch = 8, .validate = data});
  CHECK(*trainer.evaluate(data, {.batch = 5}).accuracy == Approx(expected()));
  CHECK(expected() == 1);
  CHECK(*trainer.evaluate(data, {.batch = 5, .k = 2}).top_k == 1);
}

}  // namespace

TEST_CASE("accuracy takes the classes where the loss has them", "[train]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    for (const std::int64_t length : {6, kClasses}) {
      INFO(length);
      check_accuracy<ClassesSecond>(device, loss::cross_entropy, length, 1);
      check_accuracy<ClassesSecond>(device, loss::CrossEntropy{.weights = {1, 2, 1, 1, 1}}, length, 1);
      check_accuracy<ClassesSecond>(
          device, [](Value x, Value t) { return loss::nll(log_softmax(x, 1), t); }, length, 1);
      check_accuracy<ClassesLast>(device, loss_of_rows, length, 2);
      check_accuracy<ClassesLast>(device, loss_of_transposed, length, 2);
      check_accuracy<ClassesLast>(device, models::loss_of(models::Task::language), length, 2);
      check_accuracy<ClassesLast>(
          device, [](Value x, Value t) { return 0.5F * loss_of_rows(x * 0.5F, t); }, length, 2);
    }
  }
}

TEST_CASE("a segmentation is scored pixel by pixel", "[train]") {
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    for (const std::int64_t size : {3, 4}) {  // as many as classes, and others
      INFO(size);
      Dataset data;
      data.name = "pixels";
      data.classes = 3;
      data.features = Tensor(DType::f32, Shape{6, 1, size, size});
      data.labels = Tensor(DType::i32, Shape{6, size, size});
      for (std::size_t i = 0; i < data.labels.values<std::int32_t>().size(); ++i) {
        const auto pixel = static_cast<std::int32_t>(i * i % 11 % 3);
        data.features.values<float>()[i] = static_cast<float>(pixel - 1);
        data.labels.values<std::int32_t>()[i] = pixel == 2 && i % 4 == 0 ? -1 : pixel;
      }
      const auto trainer_of = [&](const Loss& loss) {
        return Trainer{nn::Sequential{nn::Conv2d{1, 3, 1}}, loss, optim::Adam{.lr = 0.2}, device, {.seed = 2}};
      };
      Trainer trainer = trainer_of(loss::CrossEntropy{.ignore_index = -1});
      trainer.fit(data, {.epochs = 60, .batch = 4});
      CHECK(*trainer.evaluate(data, {.batch = 4}).accuracy == 1);
      data.classes = 4;
      data.labels.values<std::int32_t>()[0] = 3;
      if (size == 3) CHECK_THROWS_AS(trainer.evaluate(data), ArgumentError);
      Trainer fresh = trainer_of(loss::CrossEntropy{.ignore_index = -1});
      CHECK_THROWS_WITH(fresh.fit(data), contains("labels up to 3") && contains("3 outputs"));
    }
  }
}

TEST_CASE("outputs whose classes nothing tells are refused in place of a guess", "[train]") {
  const Loss of_hot = [](Value x, Value t) {  // neither a cross entropy nor a softmax
    const Value column = reshape(t, {t.shape()[0], t.shape()[1], 1});
    return mean(pointwise("distance", {x, column},
                          scalar::abs(scalar::input(0) - scalar::equal(scalar::coordinate(0), scalar::input(1)))));
  };
  for (const DevicePtr& device : devices()) {
    INFO(device->info().id);
    Trainer clear{ClassesLast{}, of_hot, optim::Sgd{.lr = 0.1}, device};
    CHECK(clear.evaluate(places(6)).accuracy.has_value());
    Dataset data = places(kClasses);
    Trainer trainer{ClassesLast{}, of_hot, optim::Sgd{.lr = 0.1}, device};
    CHECK_THROWS_AS(trainer.evaluate(data), ArgumentError);
    CHECK_THROWS_WITH(trainer.evaluate(data), contains("[16, 5, 5]") && contains("0 classes"));
    data.classes = 0;
    CHECK_FALSE(trainer.evaluate(data).accuracy.has_value());
  }
}
