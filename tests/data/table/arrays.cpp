// Data sets of numpy's arrays: usual names, layouts of images, kinds of labels, and what is refused.
#include "concord/data/table/arrays.hpp"

#include "core/thrown.hpp"
#include "io/zip_file.hpp"

using namespace concord;
using namespace concord::test;

namespace {

template <class T>
Tensor counting_array(Shape shape, T modulus = 0) {
  Tensor tensor(dtype_of<T>(), std::move(shape));
  std::int32_t i = 0;
  for (T& value : tensor.values<T>()) {
    value = static_cast<T>(modulus > 0 ? i % static_cast<std::int32_t>(modulus) : i);
    ++i;
  }
  return tensor;
}

/// The data set of these two arrays.
Dataset read_arrays(const Tensor& features, const Tensor& labels, std::optional<std::int32_t> ignored = {}) {
  const TemporaryFolder folder;
  io::write_npy(folder / "X.npy", features);
  io::write_npy(folder / "Y.npy", labels);
  return data::npy(folder / "X.npy", folder / "Y.npy", ignored);
}

}  // namespace

TEST_CASE("images in .npy files become channels first", "[data]") {
  const Tensor labels = counting_array<std::int32_t>(Shape{4}, 3);
  const Dataset grey = read_arrays(counting_array<std::uint8_t>(Shape{4, 2, 3}), labels);
  CHECK(grey.name == "X.npy");
  CHECK(grey.features.spec() == TensorSpec{DType::u8, Shape{4, 1, 2, 3}});
  CHECK(grey.labels.spec() == TensorSpec{DType::i32, Shape{4}});
  CHECK(grey.classes == 3);

  const Dataset colour = read_arrays(counting_array<std::uint8_t>(Shape{4, 2, 5, 3}), labels);
  CHECK(colour.features.shape() == Shape{4, 3, 2, 5});
  const auto values = colour.features.values<std::uint8_t>();
  for (std::size_t n = 0; n < 4; ++n) {
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t i = 0; i < 10; ++i) CHECK(values[n * 30 + c * 10 + i] == n * 30 + i * 3 + c);
    }
  }
  CHECK(read_arrays(counting_array<std::uint8_t>(Shape{4, 2, 5, 1}), labels).features.shape() == Shape{4, 1, 2, 5});
  // First channels, or no images at all, stay.
  CHECK(read_arrays(counting_array<std::uint8_t>(Shape{4, 3, 5, 3}), labels).features.shape() == Shape{4, 3, 5, 3});
  CHECK(read_arrays(counting_array<float>(Shape{4, 2, 5, 3}), labels).features.shape() == Shape{4, 2, 5, 3});
  CHECK(read_arrays(counting_array<std::uint8_t>(Shape{4, 7}), labels).features.shape() == Shape{4, 7});
}

TEST_CASE("whole numbers are classes and others are targets", "[data]") {
  const Tensor features = counting_array<float>(Shape{4, 2});
  const Dataset bytes = read_arrays(features, counting_array<std::uint8_t>(Shape{4, 1}, 2));
  CHECK(bytes.labels.spec() == TensorSpec{DType::i32, Shape{4}});
  CHECK(bytes.labels.values<std::int32_t>()[3] == 1);
  CHECK(bytes.classes == 2);
  const Dataset pixels = read_arrays(features, counting_array<std::int32_t>(Shape{4, 3, 5}, 6), 5);
  CHECK(pixels.labels.shape() == Shape{4, 3, 5});
  CHECK(pixels.classes == 5);
  const Dataset targets = read_arrays(features, counting_array<float>(Shape{4}));
  CHECK(targets.labels.spec() == TensorSpec{DType::f32, Shape{4, 1}});
  CHECK(targets.classes == 0);

  const auto error_of = [&](const Tensor& x, const Tensor& y) {
    return thrown([&] { static_cast<void>(read_arrays(x, y)); });
  };
  CHECK_THAT(error_of(features, counting_array<std::int32_t>(Shape{3})), contains("4 samples") && contains("3 labels"));
  CHECK_THAT(error_of(features, Tensor(DType::i32, Shape{})), contains("need a first dimension"));
  CHECK_THAT(error_of(Tensor(DType::f32, Shape{0, 2}), Tensor(DType::i32, Shape{0})), contains("no samples"));
  CHECK_THAT(error_of(features, Tensor::of<std::int32_t>(Shape{4}, std::vector<std::int32_t>{0, 1, -1, 0})),
             contains("Y.npy: element 2 is -1 and no class index"));
  CHECK_THAT(thrown([] { static_cast<void>(data::npy("none.npy", "none.npy")); }), contains("none.npy"));
}

TEST_CASE("bytes of a table and bool are numbers, not levels of grey", "[data]") {
  const Tensor labels = counting_array<std::int32_t>(Shape{4}, 2);
  CHECK(read_arrays(counting_array<std::uint8_t>(Shape{4, 7}), labels).feature_specs()[0].scale == 1);
  CHECK(read_arrays(counting_array<std::uint8_t>(Shape{4}), labels).feature_specs()[0].scale == 1);
  CHECK(read_arrays(counting_array<std::uint8_t>(Shape{4, 2, 7}), labels).feature_specs()[0].scale == 1.0F / 255);
  const auto flags = [&](Shape shape) {
    const TemporaryFolder folder;
    io::write_npy(folder / "X.npy", counting_array<std::uint8_t>(std::move(shape), 2), io::NpyType::boolean);
    Dataset dataset = data::npy(folder / "X.npy");
    return static_cast<float>(dataset.features.values<std::uint8_t>()[1]) * dataset.scale;
  };
  CHECK(flags(Shape{4, 7}) == 1);
  CHECK(flags(Shape{4, 2, 7}) == 1);
}

TEST_CASE("the arrays of an .npz file are found by usual names, by split, or by those given", "[data]") {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::vector<std::string>& arrays) {
    std::vector<ZipEntry> entries;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const auto n = static_cast<std::int64_t>(2 + i / 2);
      entries.push_back(
          {arrays[i] + ".npy", npy_content(folder, i % 2 == 0 ? counting_array<std::uint8_t>(Shape{n, 4, 4})
                                                              : counting_array<std::uint8_t>(Shape{n}, 2))});
    }
    write_file(folder / name, zip_content(entries));
    return folder / name;
  };
  const auto keras = write("mnist.npz", {"x_train", "y_train", "x_test", "y_test"});
  CHECK(data::npz(keras).size() == 2);
  CHECK(data::npz(keras).name == "mnist.npz");
  CHECK(data::npz(keras, {}, {}, "test").features.shape() == Shape{3, 1, 4, 4});
  CHECK(data::npz(keras, "x_test", "y_test").size() == 3);
  CHECK(data::npz_has_test(keras));

  for (const auto& [x, y] : {std::pair{"x", "y"},
                             {"X", "Y"},
                             {"features", "labels"},
                             {"data", "target"},
                             {"arr_0", "arr_1"},
                             {"train_images", "train_labels"}}) {
    const auto file = write("a.npz", {x, y});
    CHECK(data::npz(file).classes == 2);
    CHECK_FALSE(data::npz_has_test(file));
    CHECK_THAT(thrown([&] { static_cast<void>(data::npz(file, {}, {}, "test")); }),
               contains("ArgumentError") && contains("x=NAME") && contains(x));
  }
  CHECK_THAT(thrown([&] { static_cast<void>(data::npz(keras, "z", "y_test")); }), contains("There are: x_train, "));
  CHECK_THAT(thrown([&] { static_cast<void>(data::npz(keras, "x_train", "y_test")); }),
             contains("mnist.npz, x_train has 2 samples"));
  CHECK_THAT(thrown([&] { static_cast<void>(data::npz(keras, {}, {}, "valid")); }), contains("neither train nor test"));
}
