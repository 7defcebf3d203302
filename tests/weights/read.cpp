// Files of weights against what their own programs read (tests/goldens/weights_files.py): every tensor by its type,
// shape and bytes. Files that are programs are refused, and nothing in them runs.
#include <zlib.h>

#include <set>

#include "concord/weights/file.hpp"
#include "concord/weights/keras_config.hpp"
#include "files.hpp"
#include "goldens.hpp"
#include "weights/hdf5_reader.hpp"
#include "weights/model_files.hpp"
#include "weights/torch_file.hpp"

using namespace concord;
using namespace concord::test;

namespace {

void check_file(const std::filesystem::path& path, const nlohmann::json& recorded) {
  INFO(path.string());
  weights::File file(path);
  CHECK(file.tensors().size() == recorded.size());
  for (const auto& [name, entry] : recorded.items()) {
    INFO(name);
    REQUIRE(file.tensors().contains(name));
    CHECK(file.tensors().at(name).dtype == entry.at(0).get<std::string>());
    const Tensor tensor = file.read(name);
    CHECK(tensor.shape() == Shape(entry.at(1).get<std::vector<std::int64_t>>()));
    const auto bytes = tensor.bytes();
    const auto sum = crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
    CHECK(sum == entry.at(2).get<unsigned long>());
  }
}

std::string refused(const std::string& name) {
  return message_of<FormatError>([&] { weights::File file(golden_path("weights/" + name)); });
}

}  // namespace

TEST_CASE("each tensor of a PyTorch or Caffe file has the bytes that were written", "[weights]") {
  const nlohmann::json recorded = golden("weights_files.json");
  for (const char* name : {"weights/zip.pth", "weights/legacy.pth", "weights/newer.pth", "weights/checkpoint.pth",
                           "weights/nested.pth", "weights/caffe.caffemodel"}) {
    check_file(golden_path(name), recorded.at(name));
  }
}

TEST_CASE("each tensor of a published file has the bytes that its program reads", "[weights]") {
  const nlohmann::json recorded = golden("weights_files.json");
  for (const char* name : {"crepe_tiny.pth", "lpips_alex.pth", "lpips_squeeze.pth", "onet.pt", "pnet.pt", "rnet.pt"}) {
    if (const auto path = model_file(name)) check_file(*path, recorded.at(name));
  }
}

TEST_CASE("each tensor of a Keras file has the bytes that Keras has", "[weights]") {
  if (!has_hdf5_reader()) return;
  const nlohmann::json recorded = golden("weights_files.json");
  for (const char* name : {"weights/keras.h5", "weights/keras3.keras", "weights/keras3.weights.h5"})
    check_file(golden_path(name), recorded.at(name));
  if (const auto path = model_file("fer_emotion.hdf5")) check_file(*path, recorded.at("fer_emotion.hdf5"));
}

TEST_CASE("a checkpoint's weights are found inside it, and the rest is said to be left out", "[weights]") {
  const weights::File file(golden_path("weights/checkpoint.pth"));
  CHECK(file.format() == "PyTorch (zip)");
  REQUIRE(file.notes().size() == 2);
  CHECK(file.notes()[0] == "the tensors are those of \"state_dict\"");
  CHECK(file.notes()[1] == "left out: epoch, optimizer");
}

TEST_CASE("single numbers beside the weights of a checkpoint do not hide them", "[weights]") {
  const TemporaryFolder folder;
  // The tensors of a checkpoint by name; storages "0" of two numbers, "1" and "2" of one.
  const auto names_of = [&](const std::vector<std::pair<std::string, std::string>>& items) {
    write_file(folder / "a.pth", torch_zip(dict_of(items), {std::string(8, '\1'), "1234", "5678"}));
    std::vector<std::string> names;
    const weights::File file(folder / "a.pth");
    for (const auto& [name, entry] : file.tensors()) names.push_back(name);
    return names;
  };
  using Names = std::vector<std::string>;
  const std::string pair = vector_value(2), one = vector_value(1, "1"), other = vector_value(1, "2");
  const std::string scalar = tensor_value(number(1), number(0) + ")" + ")", "1");
  const std::string state = dict_of({{"fc.weight", pair}, {"fc.bias", other}});
  const Names expected{"fc.bias", "fc.weight"};
  // PyTorch's example for ImageNet, nanoGPT, timm's averages.
  CHECK(names_of({{"epoch", number(3)}, {"state_dict", state}, {"best_acc1", one}}) == expected);
  CHECK(names_of({{"model", state}, {"best_val_loss", scalar}}) == expected);
  CHECK(names_of({{"state_dict", state}, {"class_weights", pair}}) == expected);
  for (const char* ema : {"state_dict_ema", "model_ema", "ema"}) CHECK(names_of({{ema, state}}) == expected);
  CHECK(names_of({{"ema", dict_of({{"w", other}})}, {"model", state}, {"best", one}}) == expected);
  // Networks with a layer of such a name, and settings of such a name.
  CHECK(names_of({{"model", dict_of({{"weight", pair}})}, {"scale", vector_value(2)}}) ==
        Names{"model.weight", "scale"});
  CHECK(names_of({{"model.weight", pair}, {"net.bias", one}}) == Names{"model.weight", "net.bias"});
  CHECK(names_of({{"params", dict_of({{"lr", number(3)}})}, {"fc.bias", one}}) == Names{"fc.bias"});
  // What was left out is said.
  CHECK(weights::read(folder / "a.pth").notes == Names{"left out: params.lr"});
  names_of({{"state_dict", state}, {"best_acc1", one}});
  CHECK(weights::read(folder / "a.pth").notes ==
        Names{"the tensors are those of \"state_dict\"", "left out: best_acc1"});
}

TEST_CASE("a file that calls for code is refused, with the name of what it calls for", "[weights]") {
  CHECK_THAT(refused("evil.pth"), contains("evil.pth, evil/data.pkl, byte 13") && contains("'posix.system'"));
  CHECK_THAT(refused("evil.pkl"), contains("evil.pkl, byte 13") && contains("'posix.system'"));
  CHECK_THAT(refused("module.pth"), contains("'torch.nn.modules.linear.Linear'") && contains("state_dict()"));
  CHECK_THAT(refused("script.pt"), contains("TorchScript") && contains("torch.onnx.export"));
  CHECK_FALSE(std::filesystem::exists("executed"));
}

TEST_CASE("a safetensors file is one, whatever the length of its header looks like", "[weights]") {
  const TemporaryFolder folder;
  std::set<char> seconds;
  for (std::size_t length = 1; length < 1400; length += 8) {  // 0x80 0x02 and 0x0a among them
    io::write_safetensors(folder / "a", {{std::string(length, 'n'), Tensor(DType::f32, {1})}});
    if (content_of(folder / "a")[0] == '\x80') seconds.insert(content_of(folder / "a")[1]);
    CHECK(weights::File(folder / "a").format() == "safetensors");
  }
  CHECK(seconds.contains('\x02'));
}

TEST_CASE("an index gives the tensors of several files beside it", "[weights]") {
  const TemporaryFolder folder;
  io::write_safetensors(folder / "a.safetensors", {{"x", Tensor::of<float>({1}, std::vector<float>{1})}});
  io::write_safetensors(folder / "b.safetensors", {{"y", Tensor::of<float>({1}, std::vector<float>{2})}});
  const std::filesystem::path index = folder / "model.safetensors.index.json";
  write_file(index, R"({"metadata":{},"weight_map":{"x":"a.safetensors","y":"b.safetensors"}})");
  const weights::Contents contents = weights::read(index);
  CHECK(contents.format == "safetensors, 2 files");
  REQUIRE(contents.tensors.size() == 2);
  CHECK(contents.tensors.at("y").values<float>()[0] == 2);
  const auto refused_index = [&](const std::string& map) {
    write_file(index, R"({"weight_map":)" + map + "}");
    return message_of<FormatError>([&] { static_cast<void>(weights::read(index)); });
  };
  CHECK_THAT(refused_index(R"({"x":"../a.safetensors"})"), contains("not the name of a file beside the index"));
  CHECK_THAT(refused_index(R"({"z":"a.safetensors"})"), contains("a.safetensors has no tensor z"));
  CHECK_THAT(refused_index("{}"), contains("names no tensor"));
  CHECK_THAT(refused_index("3"), contains("index.json"));
}

TEST_CASE("a whole file is read with what was cast", "[weights]") {
  const weights::Contents contents = weights::read(golden_path("weights/zip.pth"));
  CHECK(contents.tensors.size() == 19);
  CHECK(contents.cast == std::vector<std::string>{"bool: BOOL → u8", "float64: F64 → f32", "int16: I16 → i32",
                                                  "int64: I64 → i32", "int8: I8 → i32"});
  CHECK(contents.tensors.at("scalar").values<float>()[0] == 1.5F);
}

TEST_CASE("Keras's Normalization keeps the names of its numbers, which are those of no batch norm", "[weights]") {
  const weights::KerasNames names(R"({"config":{"layers":[{"class_name":"Normalization","config":{"name":"norm"}},)"
                                  R"({"class_name":"BatchNormalization","config":{"name":"batch"}}]}})",
                                  "config.json");
  CHECK(names.name_of("layers/normalization/vars/0") == "norm.mean");
  CHECK(names.name_of("layers/normalization/vars/1") == "norm.variance");
  CHECK(names.name_of("layers/batch_normalization/vars/0") == "batch.gamma");
}

TEST_CASE("variables of a .weights.h5 have the names of their layers, as far as the file says", "[weights]") {
  const std::vector<std::string> paths{"layers/batch_normalization/vars/0",     "layers/batch_normalization/vars/1",
                                       "layers/batch_normalization_1/vars/0",   "layers/batch_normalization_1/vars/1",
                                       "layers/batch_normalization_1/vars/2",   "layers/conv2d_12/vars/0",
                                       "layers/functional/layers/dense/vars/1", "layers/layer_normalization/vars/1",
                                       "layers/layer_normalization/vars/0",     "layers/lstm/cell/vars/1"};
  const weights::KerasNames names(paths, {{"layers/conv2d_12/vars", "stem"},
                                          {"layers/functional/vars", "encoder"},
                                          {"layers/functional/layers/dense/vars", "out"},
                                          {"layers/lstm/vars", "memory"},
                                          {"layers/lstm/cell/vars", "lstm_cell"}});
  CHECK(names.name_of("layers/conv2d_12/vars/0") == "stem.kernel");
  CHECK(names.name_of("layers/conv2d_12/vars/1") == "stem.bias");
  CHECK(names.name_of("layers/functional/layers/dense/vars/1") == "encoder.out.bias");
  CHECK(names.name_of("layers/layer_normalization/vars/1") == "layer_normalization.beta");
  CHECK(names.name_of("layers/lstm/cell/vars/1") == "memory.recurrent_kernel");
  CHECK(names.name_of("layers/batch_normalization/vars/1") == "batch_normalization.moving_variance");
  // Of three variables the first is a scale or a shift.
  CHECK(names.name_of("layers/batch_normalization_1/vars/0") == "batch_normalization_1.0");
}
