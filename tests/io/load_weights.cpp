// Weights of other programs: other number formats, other names, other files.
#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "concord/core/philox.hpp"
#include "files.hpp"

using namespace concord;
using namespace concord::test;

namespace {

struct Part {
  std::string name, dtype, shape;
  std::string bytes;
};

template <class T>
std::string bytes_of(const std::vector<T>& numbers) {
  std::string bytes(numbers.size() * sizeof(T), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

void write(const std::filesystem::path& path, const std::vector<Part>& parts) {
  std::string header, data;
  for (const Part& part : parts) {
    header += fmt::format(R"({}"{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", header.empty() ? "{" : ",",
                          part.name, part.dtype, part.shape, data.size(), data.size() + part.bytes.size());
    data += part.bytes;
  }
  header += "}";
  std::string length(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) length[i] = static_cast<char>(header.size() >> (8 * i) & 0xff);
  write_file(path, length + header + data);
}

std::vector<float> loaded(const std::string& dtype, std::int64_t count, const std::string& bytes) {
  const TemporaryFolder folder;
  write(folder / "a", {{"w", dtype, fmt::format("[{}]", count), bytes}});
  const io::TensorMap tensors = io::load_weights(folder / "a", {{"w", {DType::f32, Shape{count}}}});
  const auto values = tensors.at("w").values<float>();
  return {values.begin(), values.end()};
}

/// Of all 65536.
float f16_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1F;
  const double mantissa = bits & 0x3FF, sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0x1F) return static_cast<float>(mantissa == 0 ? sign * INFINITY : NAN);
  return static_cast<float>(sign *
                            (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25)));
}

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

const std::map<std::string, TensorSpec> kNetwork = {{"fc.weight", {DType::f32, {2, 2}}},
                                                    {"fc.bias", {DType::f32, {2}}}};

}  // namespace

TEST_CASE("every number of 16 bits becomes the same number of fp32", "[io]") {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  const std::vector<float> halves = loaded("F16", 65536, bytes_of(all)), brains = loaded("BF16", 65536, bytes_of(all));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!same(halves[i], f16_value(all[i]))) ++wrong;
    if (!same(brains[i], std::bit_cast<float>(static_cast<std::uint32_t>(i) << 16))) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("numbers of 64 bits are rounded to nearest even", "[io]") {
  std::vector<double> numbers{0.0,
                              -0.0,
                              1.0,
                              -1.5,
                              1.0 + 0x1p-24,
                              1.0 + 0x3p-24,
                              1.0 + 0x1.000001p-24,
                              0x1p-126,
                              0x1p-149,
                              0x1p-150,
                              0x1.8p-150,
                              0x1.000001p-150,
                              0x1.8p-149,
                              -0x1p-149,
                              0x1.fffffep127,
                              0x1.fffffefp127,
                              -0x1.fffffefffffffp127,
                              0x1.fffffcp-127,
                              0x1.ffffffp-127,
                              5e-324,
                              1e-300,
                              INFINITY,
                              -INFINITY,
                              NAN};
  PhiloxSequence random(Philox(1, philox_purpose("doubles")));
  for (int i = 0; i < 200'000; ++i) {
    const std::uint64_t exponent = 1023 - 152 + random.below(152 + 127);
    const std::uint64_t fraction =
        std::uint64_t{random.below(1U << 20)} << 32 | (i % 3 == 0 ? 0x10000000U : random.below(0xFFFFFFFFU));
    numbers.push_back(std::bit_cast<double>(std::uint64_t{random.below(2)} << 63 | exponent << 52 | fraction));
  }
  const std::vector<float> kept = loaded("F64", static_cast<std::int64_t>(numbers.size()), bytes_of(numbers));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    // The compiler's own conversion rounds to nearest even; volatile keeps it from being left out.
    volatile double number = numbers[i];
    if (!same(kept[i], static_cast<float>(number))) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("a number beyond fp32 is named with its tensor and element", "[io]") {
  for (const double large : {1e39, -1e300, 0x1.ffffffp127}) {
    const std::string message = message_of<FormatError>([&] {
      static_cast<void>(loaded("F64", 3, bytes_of<double>({1, 2, large})));
    });
    INFO(message);
    CHECK(contains(message, "w: element 2 is "));
    CHECK(contains(message, "f32"));
  }
}

TEST_CASE("whole numbers of any width become i32 where they fit", "[io]") {
  const TemporaryFolder folder;
  const std::map<std::string, TensorSpec> network{{"n", {DType::i32, {2}}}};
  const auto read = [&](const std::string& dtype, const std::string& bytes) {
    write(folder / "a", {{"n", dtype, "[2]", bytes}});
    return io::load_weights(folder / "a", network).at("n").values<std::int32_t>()[1];
  };
  CHECK(read("I64", bytes_of<std::int64_t>({1, -7})) == -7);
  CHECK(read("U8", bytes_of<std::uint8_t>({1, 200})) == 200);
  CHECK(read("I16", bytes_of<std::int16_t>({1, -300})) == -300);
  CHECK(read("BOOL", std::string("\0\1", 2)) == 1);
  for (const auto& [dtype, bytes] :
       std::vector<std::pair<std::string, std::string>>{{"I64", bytes_of<std::int64_t>({1, std::int64_t{1} << 31})},
                                                        {"U32", bytes_of<std::uint32_t>({1, 0x80000000U})}}) {
    CHECK(contains(message_of<FormatError>([&] { static_cast<void>(read(dtype, bytes)); }),
                   "n: element 1 is 2147483648"));
  }
  // Numbers of one kind are not taken for those of the other.
  write(folder / "a", {{"w", "I64", "[1]", bytes_of<std::int64_t>({1})}});
  CHECK(contains(message_of<FormatError>([&] {
                   (void)io::load_weights(folder / "a", {{"w", {DType::f32, {1}}}});
                 }),
                 "w: expected f32 [1], got i64 [1]"));
}

TEST_CASE("PyTorch's counter of batches becomes the number that a batch norm without momentum counts", "[io]") {
  const TemporaryFolder folder;
  const std::map<std::string, TensorSpec> network{{"bn.num_batches_tracked", {DType::f32, {}}},
                                                  {"bn.running_mean", {DType::f32, {1}}}};
  const auto count = [&](const std::string& dtype, const std::string& bytes) {
    write(folder / "a",
          {{"bn.num_batches_tracked", dtype, "[]", bytes}, {"bn.running_mean", "F32", "[1]", bytes_of<float>({2})}});
    return io::load_weights(folder / "a", network).at("bn.num_batches_tracked").values<float>()[0];
  };
  CHECK(count("I64", bytes_of<std::int64_t>({1234567})) == 1234567);
  CHECK(count("I64", bytes_of<std::int64_t>({std::int64_t{1} << 40})) == 0x1p40F);
  CHECK(count("I32", bytes_of<std::int32_t>({12})) == 12);
  CHECK(count("F32", bytes_of<float>({3})) == 3);  // as Concord writes it
}

TEST_CASE("all that does not fit is told at once", "[io]") {
  const TemporaryFolder folder;
  const std::string f32(16, '\0');
  write(folder / "a", {{"fc.weight", "F64", "[1,2]", f32},
                       {"head.bias", "BF16", "[2]", std::string(4, '\0')},
                       {"head.n", "I64", "[]", std::string(8, '\0')}});
  const std::string message = message_of<FormatError>([&] { (void)io::load_weights(folder / "a", kNetwork); });
  INFO(message);
  CHECK(contains(message,
                 "a: weights of another network: 1 missing (fc.bias), 2 unexpected (head.bias, head.n), 1 of another "
                 "shape (fc.weight: expected f32 [2, 2], got f64 [1, 2])"));
}

TEST_CASE("a load that is not strict takes what fits and tells the rest", "[io]") {
  const TemporaryFolder folder;
  write(folder / "a", {{"fc.bias", "F16", "[2]", bytes_of<std::uint16_t>({0x3C00, 0xC000})},
                       {"fc.weight", "F32", "[3,2]", std::string(24, '\0')},
                       {"more", "U8", "[1]", "x"}});
  const io::LoadedWeights part = io::load_weights(folder / "a", kNetwork, {.strict = false});
  REQUIRE(part.tensors.size() == 1);
  CHECK(part.tensors.at("fc.bias").values<float>()[1] == -2.0F);
  CHECK(part.report.missing.empty());
  CHECK(part.report.unexpected == std::vector<std::string>{"more"});
  CHECK(part.report.misshaped == std::vector<std::string>{"fc.weight: expected f32 [2, 2], got f32 [3, 2]"});
  CHECK_THROWS_AS(io::load_weights(folder / "a", {{"other", {DType::f32, {1}}}}, {.strict = false}), FormatError);
}

TEST_CASE("only a batch counter beside a running mean, and heads beside a whole network, are skipped", "[io]") {
  const TemporaryFolder folder;
  const std::string four(4, '\0'), eight(8, '\0');
  write(folder / "a", {{"w", "F32", "[1]", four}, {"x.num_batches_tracked", "I64", "[]", eight}});
  CHECK(contains(message_of<FormatError>([&] {
                   (void)io::load_weights(folder / "a", {{"w", {DType::f32, {1}}}});
                 }),
                 "1 unexpected (x.num_batches_tracked)"));
  write(folder / "a", {{"w", "F32", "[1]", four}, {"aux1.w", "F32", "[1]", four}});
  CHECK(io::load_weights(folder / "a", {{"w", {DType::f32, {1}}}}).size() == 1);
  CHECK(contains(message_of<FormatError>([&] {
                   (void)io::load_weights(folder / "a", {{"v", {DType::f32, {1}}}});
                 }),
                 "2 unexpected (aux1.w, w)"));
}

TEST_CASE("a file of another format is called by its name", "[io]") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& name, const std::string& content) {
    write_file(folder / name, content);
    std::string message = message_of<FormatError>([&] { (void)io::load_weights(folder / name, kNetwork); });
    CHECK(contains(message, name));
    return message;
  };
  const std::string rest(100, '\7');
  CHECK(contains(refusal("net.pth", "PK\x03\x04" + rest), "PyTorch"));
  CHECK(contains(refusal("net", "PK\x03\x04" + rest), "PyTorch"));
  CHECK(contains(refusal("net.pt", "\x80\x02" + rest), "PyTorch"));
  CHECK(contains(refusal("net.h5", "\x89HDF\r\n\x1a\n" + rest), "HDF5"));
  CHECK(contains(refusal("net.onnx", "\x08\x07\x12\x07pytorch" + rest), "ONNX"));
  CHECK(contains(refusal("net.npz", "PK\x03\x04" + rest), "NumPy"));
  CHECK(contains(refusal("net.npy", "\x93NUMPY" + rest), "NumPy"));
  CHECK(contains(refusal("net.gguf", "GGUF" + rest), "GGUF"));
  CHECK(contains(refusal("net.safetensors", "version https://git-lfs.github.com/spec/v1\n"), "Git LFS"));
  CHECK(contains(refusal("short.pt", "x"), "PyTorch"));
  for (const char* known : {"net.pth", "net.h5", "net.onnx"}) {
    CHECK(contains(message_of<FormatError>([&] { (void)io::load_checkpoint(folder / known); }), "safetensors"));
  }
}
