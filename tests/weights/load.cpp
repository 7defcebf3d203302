// Loading by name maps: what is renamed, joined, transposed, cast, ignored, missing and permitted.
#include "concord/weights/load.hpp"

#include "files.hpp"
#include "goldens.hpp"
#include "weights/hdf5_reader.hpp"
#include "weights/torch_file.hpp"

using namespace concord;
using namespace concord::test;

namespace {

Tensor counted_from(float first, const Shape& shape) {
  Tensor tensor(DType::f32, shape);
  for (float& value : tensor.values<float>()) value = first++;
  return tensor;
}

std::vector<float> values_of(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

const std::map<std::string, TensorSpec> kLinear = {{"fc.weight", {DType::f32, {2, 2}}}, {"fc.bias", {DType::f32, {2}}}};

struct SavedFile {
  explicit SavedFile(const io::TensorMap& tensors) { io::write_safetensors(path(), tensors); }
  [[nodiscard]] std::filesystem::path path() const { return folder / "net.safetensors"; }
  TemporaryFolder folder;
};

std::string load_refusal(const io::TensorMap& tensors, const std::map<std::string, TensorSpec>& wanted,
                         const io::LoadOptions& options = {}) {
  const SavedFile file(tensors);
  return message_of<FormatError>([&] { static_cast<void>(weights::load(file.path(), wanted, options)); });
}

}  // namespace

TEST_CASE("prefixes of wrappers are stripped, and that is reported", "[weights]") {
  const SavedFile file(
      {{"module._orig_mod.fc.weight", counted_from(0, {2, 2})}, {"module._orig_mod.fc.bias", counted_from(4, {2})}});
  const weights::Loaded loaded = weights::load(file.path(), kLinear);
  CHECK(values_of(loaded.tensors.at("fc.bias")) == std::vector<float>{4, 5});
  CHECK(loaded.report.renamed.size() == 2);
  CHECK(loaded.report.renamed[0] == "module._orig_mod.fc.bias → fc.bias");
  CHECK(loaded.report.differences.is_empty());
  // A network may have such a name itself.
  CHECK(weights::load(file.path(), {{"module._orig_mod.fc.weight", {DType::f32, {2, 2}}},
                                    {"module._orig_mod.fc.bias", {DType::f32, {2}}}})
            .report.renamed.empty());
}

TEST_CASE("a tensor that comes from two of a file is refused", "[weights]") {
  const std::string message = load_refusal({{"module.fc.weight", counted_from(0, {2, 2})},
                                            {"model.fc.weight", counted_from(0, {2, 2})},
                                            {"fc.bias", counted_from(0, {2})}},
                                           kLinear);
  CHECK_THAT(message, contains("of another network") && contains("fc.weight: expected f32 [2, 2], got"));
}

TEST_CASE("differences are refused all at once, and permitted by patterns", "[weights]") {
  const io::TensorMap tensors{{"fc.weight", counted_from(0, {3, 2})}, {"head.bias", counted_from(0, {3})}};
  CHECK_THAT(load_refusal(tensors, kLinear),
             contains("1 missing (fc.bias), 1 unexpected (head.bias), 1 of another shape (fc.weight: expected f32 [2, "
                      "2], got f32 [3, 2])"));
  CHECK_THAT(load_refusal(tensors, kLinear, {.permit_missing = {"fc.*"}}), contains("1 unexpected (head.bias)"));
  CHECK_THAT(load_refusal(tensors, kLinear, {.permit_missing = {"fc.*"}, .permit_extra = {"*"}}),
             contains("no tensor matches"));
  const SavedFile file({{"fc.weight", counted_from(0, {2, 2})}, {"head.bias", counted_from(0, {3})}});
  const weights::Loaded loaded =
      weights::load(file.path(), kLinear, {.permit_missing = {"fc.bias"}, .permit_extra = {"head.*"}});
  CHECK(loaded.tensors.size() == 1);
  CHECK(loaded.report.differences.missing == std::vector<std::string>{"fc.bias"});
  CHECK(loaded.report.differences.unexpected == std::vector<std::string>{"head.bias"});
}

TEST_CASE("auxiliary classifiers are left out beside a whole network", "[weights]") {
  io::TensorMap tensors{{"fc.weight", counted_from(0, {2, 2})},
                        {"fc.bias", counted_from(0, {2})},
                        {"aux1.conv.bn.running_mean", counted_from(0, {2})}};
  {
    const SavedFile file(tensors);
    const weights::Loaded loaded = weights::load(file.path(), kLinear);
    CHECK(loaded.report.differences.is_empty());
    CHECK(loaded.report.ignored == std::vector<std::string>{"aux1.conv.bn.running_mean"});
  }
  tensors.emplace("aux3.conv.weight", counted_from(0, {2}));
  CHECK_THAT(load_refusal(tensors, kLinear), contains("1 unexpected (aux3.conv.weight)"));
}

TEST_CASE("query, key and value become one tensor, in that order", "[weights]") {
  const std::string block = "vit.layers.0.attention.";
  io::TensorMap tensors;
  for (const auto& [name, first] : {std::pair("q_proj", 0.0F), std::pair("k_proj", 4.0F), std::pair("v_proj", 8.0F)}) {
    tensors.emplace(block + name + ".weight", counted_from(first, {2, 2}));
  }
  const std::string ours = "encoder.layers.encoder_layer_0.self_attention.in_proj_weight";
  const std::map<std::string, TensorSpec> wanted{{ours, {DType::f32, {6, 2}}}};
  const SavedFile file(tensors);
  const weights::Loaded loaded = weights::load(file.path(), wanted);
  CHECK(loaded.report.map == "Hugging Face: ViT");
  CHECK(values_of(loaded.tensors.at(ours)) == values_of(counted_from(0, {6, 2})));
  // As files on the hub have them.
  const std::string older = "vit.encoder.layer.0.attention.attention.";
  const SavedFile older_file({{older + "query.weight", tensors.at(block + "q_proj.weight")},
                              {older + "key.weight", tensors.at(block + "k_proj.weight")},
                              {older + "value.weight", tensors.at(block + "v_proj.weight")}});
  CHECK(values_of(weights::load(older_file.path(), wanted).tensors.at(ours)) == values_of(counted_from(0, {6, 2})));
  tensors.erase(block + "k_proj.weight");
  CHECK_THAT(load_refusal(tensors, wanted), contains("Hugging Face: ViT") && contains("got 2 of its 3 parts"));
}

TEST_CASE("names of earlier published files are known", "[weights]") {
  const SavedFile vit({{"encoder.layers.encoder_layer_3.mlp.linear_2.bias", counted_from(0, {2})}});
  CHECK(weights::load(vit.path(), {{"encoder.layers.encoder_layer_3.mlp.3.bias", {DType::f32, {2}}}}).tensors.size() ==
        1);
  const SavedFile densenet({{"features.denseblock1.denselayer2.norm.1.weight", counted_from(0, {2})}});
  CHECK(weights::load(densenet.path(), {{"features.denseblock1.denselayer2.norm1.weight", {DType::f32, {2}}}})
            .tensors.size() == 1);
  const SavedFile bert({{"encoder.layer.0.output.LayerNorm.gamma", counted_from(0, {2})}});
  CHECK(weights::load(bert.path(), {{"bert.encoder.layer.0.output.LayerNorm.weight", {DType::f32, {2}}}})
            .tensors.size() == 1);
}

TEST_CASE("GPT-2's projections are transposed, and its head has to be the embedding", "[weights]") {
  io::TensorMap tensors{{"transformer.h.0.attn.c_attn.weight", counted_from(0, {2, 6})},
                        {"transformer.h.0.attn.bias", counted_from(0, {1, 1, 4, 4})},
                        {"transformer.wte.weight", counted_from(0, {5, 2})},
                        {"lm_head.weight", counted_from(0, {5, 2})}};
  const std::map<std::string, TensorSpec> wanted{{"h.0.attn.c_attn.weight", {DType::f32, {6, 2}}},
                                                 {"wte.weight", {DType::f32, {5, 2}}}};
  const SavedFile file(tensors);
  const weights::Loaded loaded = weights::load(file.path(), wanted);
  CHECK(values_of(loaded.tensors.at("h.0.attn.c_attn.weight")) ==
        std::vector<float>{0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11});
  CHECK(loaded.report.ignored ==
        std::vector<std::string>{"lm_head.weight (the same as wte.weight)", "transformer.h.0.attn.bias"});
  tensors.at("lm_head.weight") = counted_from(1, {5, 2});
  CHECK_THAT(load_refusal(tensors, wanted), contains("lm_head.weight differs from wte.weight"));
}

TEST_CASE("a PyTorch checkpoint fills a network in a trainer", "[weights]") {
  struct Net : nn::Module {
    nn::Conv2d conv{1, 2, 3, {}};
    Value forward(Value x) override { return flatten(conv(x)); }
    Children children() override { return {{"conv", &conv}}; }
  };
  const DevicePtr device = devices().front();
  Trainer trainer(std::make_shared<Net>(), loss::mse, optim::Sgd{}, device);
  trainer.load(golden_path("weights/checkpoint.pth"));
  trainer.prepare({DType::f32, {1, 3, 3}});
  const TemporaryFolder folder;
  trainer.save(folder / "saved.safetensors");
  const io::TensorMap saved = io::read_safetensors(folder / "saved.safetensors").tensors;
  const weights::Contents contents = weights::read(golden_path("weights/checkpoint.pth"));
  REQUIRE(saved.size() == 2);
  for (const auto& [name, tensor] : contents.tensors) CHECK(values_of(saved.at(name)) == values_of(tensor));
}

TEST_CASE("a batch norm without momentum continues PyTorch's count of batches", "[weights]") {
  struct Net : nn::Module {
    nn::BatchNorm2d bn{2, {.momentum = {}}};
    Value forward(Value x) override { return flatten(bn(x)); }
    Children children() override { return {{"bn", &bn}}; }
  };
  const std::string scalar = number(0) + ")" + ")";
  const std::string object = dict_of({{"bn.weight", vector_value(2, "0")},
                                      {"bn.bias", vector_value(2, "1")},
                                      {"bn.running_mean", vector_value(2, "2")},
                                      {"bn.running_var", vector_value(2, "3")},
                                      {"bn.num_batches_tracked", tensor_value(number(1), scalar, "4", "Long")}});
  const std::string ones("\0\0\x80\x3f\0\0\x80\x3f", 8), counted("\x07\0\0\0\0\0\0\0", 8);
  const TemporaryFolder folder;
  write_file(folder / "theirs.pth", torch_zip(object, {ones, ones, ones, ones, counted}));
  Dataset data;
  data.features = counted_from(0, {2, 2, 3, 3});
  data.labels = Tensor::of<std::int32_t>({2}, std::vector<std::int32_t>{0, 17});
  data.classes = 18;
  // After a step of training.
  const auto count_after = [&](const std::filesystem::path& weights) {
    Trainer trainer(std::make_shared<Net>(), loss::cross_entropy, optim::Sgd{}, devices().front());
    trainer.load(weights);
    trainer.fit(data, {.epochs = 1, .batch = 2});
    trainer.save(folder / "ours.safetensors");
    return io::read_safetensors(folder / "ours.safetensors").tensors.at("bn.num_batches_tracked").values<float>()[0];
  };
  CHECK(count_after(folder / "theirs.pth") == 8);
  CHECK(count_after(folder / "ours.safetensors") == 9);
}

TEST_CASE("Keras's kernels become weights of our layouts", "[weights]") {
  if (!has_hdf5_reader()) return;
  const std::map<std::string, TensorSpec> wanted{{"first.weight", {DType::f32, {3, 2, 3, 3}}},
                                                 {"first.bias", {DType::f32, {3}}},
                                                 {"batch_normalization.weight", {DType::f32, {3}}},
                                                 {"batch_normalization.bias", {DType::f32, {3}}},
                                                 {"batch_normalization.running_mean", {DType::f32, {3}}},
                                                 {"batch_normalization.running_var", {DType::f32, {3}}},
                                                 {"separable_conv2d.depthwise.weight", {DType::f32, {3, 1, 3, 3}}},
                                                 {"separable_conv2d.pointwise.weight", {DType::f32, {4, 3, 1, 1}}},
                                                 {"separable_conv2d.bias", {DType::f32, {4}}},
                                                 {"head.weight", {DType::f32, {5, 16}}},
                                                 {"head.bias", {DType::f32, {5}}},
                                                 {"dense.weight", {DType::f32, {2, 5}}}};
  for (const char* name : {"weights/keras.h5", "weights/keras3.keras", "weights/keras3.weights.h5"}) {
    INFO(name);
    const weights::Loaded loaded = weights::load(golden_path(name), wanted);
    const weights::Contents contents = weights::read(golden_path(name));
    const auto ours = loaded.tensors.at("first.weight").values<float>();
    const auto theirs = contents.tensors.at("first.kernel").values<float>();
    bool is_equal = true;
    for (std::size_t o = 0; o < 3; ++o) {
      for (std::size_t i = 0; i < 2; ++i) {
        for (std::size_t k = 0; k < 9; ++k) is_equal &= ours[(o * 2 + i) * 9 + k] == theirs[(k * 2 + i) * 3 + o];
      }
    }
    CHECK(is_equal);
  }
}

TEST_CASE("Keras's depthwise and separable convolutions fill ours, whatever the file calls their kernels",
          "[weights]") {
  // Of 3 channels, 2 outputs each; the kernels are (H, W, in, n).
  const io::TensorMap tensors{{"dw.bias", counted_from(0, {6})},
                              {"dw.depthwise_kernel", counted_from(0, {2, 5, 3, 2})},
                              {"plain.kernel", counted_from(0, {2, 5, 3, 2})},
                              {"single.kernel", counted_from(0, {2, 5, 1, 3})},
                              {"dense.bias", counted_from(0, {2})},
                              {"dense.kernel", counted_from(0, {3, 2})},
                              {"row.depthwise_kernel", counted_from(0, {5, 3, 2})},
                              {"sep.bias", counted_from(7, {4})},
                              {"sep.depthwise_kernel", counted_from(0, {2, 5, 3, 2})},
                              {"sep.pointwise_kernel", counted_from(0, {1, 1, 6, 4})},
                              {"sep_row.depthwise_kernel", counted_from(0, {5, 3, 2})},
                              {"sep_row.pointwise_kernel", counted_from(0, {1, 6, 4})}};
  const std::map<std::string, TensorSpec> wanted{{"dw.bias", {DType::f32, {6}}},
                                                 {"dw.weight", {DType::f32, {6, 1, 2, 5}}},
                                                 {"plain.weight", {DType::f32, {2, 3, 2, 5}}},
                                                 {"single.weight", {DType::f32, {3, 1, 2, 5}}},
                                                 {"dense.bias", {DType::f32, {2}}},
                                                 {"dense.weight", {DType::f32, {2, 3}}},
                                                 {"row.weight", {DType::f32, {6, 1, 5}}},
                                                 {"sep.depthwise.weight", {DType::f32, {6, 1, 2, 5}}},
                                                 {"sep.pointwise.weight", {DType::f32, {4, 6, 1, 1}}},
                                                 {"sep.pointwise.bias", {DType::f32, {4}}},
                                                 {"sep_row.depthwise.weight", {DType::f32, {6, 1, 5}}},
                                                 {"sep_row.pointwise.weight", {DType::f32, {4, 6, 1}}}};
  // Output 2 i + k has the numbers of channel i: those that are 6 apart from its first.
  std::vector<float> kernel, row;
  for (int output = 0; output < 6; ++output) {
    for (int pixel = 0; pixel < 10; ++pixel) kernel.push_back(static_cast<float>(6 * pixel + output));
    for (int pixel = 0; pixel < 5; ++pixel) row.push_back(static_cast<float>(6 * pixel + output));
  }
  const auto check = [&](const io::TensorMap& file_tensors) {
    const SavedFile file(file_tensors);
    const io::TensorMap loaded = weights::load(file.path(), wanted).tensors;
    CHECK(values_of(loaded.at("dw.weight")) == kernel);
    CHECK(values_of(loaded.at("sep.depthwise.weight")) == kernel);
    CHECK(values_of(loaded.at("row.weight")) == row);
    CHECK(values_of(loaded.at("sep_row.depthwise.weight")) == row);
    CHECK(values_of(loaded.at("sep.pointwise.bias")) == std::vector<float>{7, 8, 9, 10});
    const auto plain = loaded.at("plain.weight").values<float>();
    CHECK(plain[0] == 0);
    CHECK(plain[1] == 6);   // the next pixel
    CHECK(plain[10] == 2);  // the next input
    CHECK(plain[30] == 1);  // the next output
    CHECK(loaded.at("single.weight").values<float>()[10] == 1);
  };
  check(tensors);
  // As .h5 files of Keras 3 have it.
  io::TensorMap renamed = tensors;
  renamed.emplace("dw.kernel", renamed.extract("dw.depthwise_kernel").mapped());
  check(renamed);
}
