// Reading inputs and writing outputs as .npy and safetensors files.
#include "concord/cli/tensor_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "concord/cli/options.hpp"
#include "concord/core/check.hpp"
#include "concord/core/philox.hpp"

namespace concord::cli {
namespace {

constexpr std::string_view kRandom = "random:";
constexpr std::string_view kNpy = ".npy", kSafetensors = ".safetensors";

Shape shape_in(std::string_view text) {
  std::vector<std::int64_t> dims;
  const char *at = text.data(), *const end = at + text.size();
  while (at != end) {
    std::int64_t size = 0;
    const auto [rest, error] = std::from_chars(at, end, size);
    CONCORD_CHECK(error == std::errc{} && size >= 0 && (rest == end || (*rest == 'x' && rest + 1 != end)),
                  ArgumentError, "{}{}: expected sizes such as random:1x3x224x224", kRandom, text);
    dims.push_back(size);
    at = rest == end ? end : rest + 1;
  }
  return Shape(std::move(dims));
}

/// Numbers in [-1/2, 1/2), or 0 and 1.
Tensor random_tensor(const std::string& name, DType type, Shape shape) {
  Tensor tensor(type, std::move(shape));
  PhiloxSequence words(Philox(1, philox_purpose("cli.run." + name)));
  if (type == DType::f32) {
    for (float& x : tensor.values<float>()) x = static_cast<float>(words.next() >> 8U) * 0x1p-24F - 0.5F;
  } else if (type == DType::i32) {
    for (std::int32_t& x : tensor.values<std::int32_t>()) x = static_cast<std::int32_t>(words.below(2));
  } else {
    for (std::uint8_t& x : tensor.values<std::uint8_t>()) x = static_cast<std::uint8_t>(words.below(2));
  }
  return tensor;
}

}  // namespace

std::pair<std::string, std::string> name_and_value(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) return {{}, text};
  return {text.substr(0, equals), text.substr(equals + 1)};
}

NamedTensors read_tensors(const std::vector<std::string>& texts, const std::vector<std::string>& names,
                          const std::map<std::string, DType>& types) {
  NamedTensors tensors;
  const auto add = [&](const std::string& name, Tensor tensor) {
    CONCORD_CHECK(tensors.emplace(name, std::move(tensor)).second, ArgumentError, "the input {} is given twice", name);
  };
  for (const std::string& text : texts) {
    auto [name, file] = name_and_value(text);
    if (name.empty() && file.ends_with(kSafetensors)) {
      for (auto& [own, tensor] : io::read_safetensors(file).tensors) add(own, std::move(tensor));
      continue;
    }
    if (name.empty()) {
      CONCORD_CHECK(names.size() <= 1, ArgumentError, "--input {}: name the input, NAME={}; there are {}", text, text,
                    fmt::join(names, ", "));
      name = names.empty() ? "input" : names[0];
    }
    if (file.starts_with(kRandom)) {
      const auto type = types.find(name);
      add(name, random_tensor(name, type == types.end() ? DType::f32 : type->second,
                              shape_in(std::string_view(file).substr(kRandom.size()))));
    } else {
      CONCORD_CHECK(file.ends_with(kNpy), ArgumentError,
                    "--input {}: expected NAME=FILE.npy, NAME=random:SIZES or FILE.safetensors", text);
      add(name, io::read_npy(file));
    }
  }
  return tensors;
}

std::vector<double> numbers_of(const Tensor& tensor) {
  const auto converted = [](const auto& values) { return std::vector<double>(values.begin(), values.end()); };
  switch (tensor.dtype()) {
    case DType::f32: return converted(tensor.values<float>());
    case DType::i32: return converted(tensor.values<std::int32_t>());
    case DType::u8: return converted(tensor.values<std::uint8_t>());
    default: throw NotSupported("tensors of 16 bits are not read as numbers");
  }
}

TensorTargets::TensorTargets(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    auto [name, file] = name_and_value(text);
    const bool is_all = name.empty() && file.ends_with(kSafetensors);
    CONCORD_CHECK(is_all || file.ends_with(kNpy), ArgumentError,
                  "--output {}: expected NAME=FILE.npy or FILE.safetensors", text);
    CONCORD_CHECK(std::ranges::find(files_, file, &std::pair<std::string, std::string>::second) == files_.end(),
                  ArgumentError, "--output {} is given twice", file);
    require_writable(file);
    files_.emplace_back(std::move(name), std::move(file));
  }
}

void TensorTargets::write(const NamedTensors& outputs, const std::map<std::string, io::NpyType>& types) const {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : outputs) names.push_back(name);
  for (const auto& [wanted, file] : files_) {
    if (file.ends_with(kSafetensors)) {
      io::write_safetensors(file, outputs);
      continue;
    }
    CONCORD_CHECK(!wanted.empty() || outputs.size() == 1, ArgumentError,
                  "--output {}: name the output, NAME={}; there are {}", file, file, fmt::join(names, ", "));
    const std::string name = wanted.empty() ? names[0] : wanted;
    const auto output = outputs.find(name);
    CONCORD_CHECK(output != outputs.end(), ArgumentError, "--output {}={}: there is no output {} among {}", name, file,
                  name, fmt::join(names, ", "));
    const auto type = types.find(name);
    io::write_npy(file, output->second, type == types.end() ? io::NpyType::same : type->second);
  }
}

}  // namespace concord::cli
