// What a command writes replaces nothing that it reads.
#include <fmt/format.h>

#include "cli/pictures.hpp"
#include "cli/process.hpp"
#include "concord/io/npy.hpp"

using namespace concord;
using namespace concord::test;

namespace {

/// Refuses the line and leaves the file what it was.
void check_kept(const std::filesystem::path& file, const Arguments& arguments, const std::string& option) {
  const std::string before = content_of(file);
  check_refusal(arguments, 2, {option, "would replace a file that is read"});
  CHECK(content_of(file) == before);
}

}  // namespace

TEST_CASE("outputs of a training replace no file that it reads", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const auto in = [&](const char* name) { return (folder / name).string(); };
  std::string text = "x,y\n";
  for (int row = 0; row < 40; ++row) text += fmt::format("{},{}\n", row % 7, row % 2);
  write_file(in("t.csv"), text);
  std::filesystem::create_hard_link(in("t.csv"), in("link"));
  std::filesystem::create_symlink(in("t.csv"), in("other"));
  const auto line = [&](const Arguments& more) {
    return with({"train", "mlp:width=4", "--data", fmt::format("csv:{},label=y", in("t.csv")), "--device",
                 cheap_device(), "--quiet"},
                more);
  };
  for (const char* option : {"--out", "--checkpoint", "--log", "--trace"}) {
    for (const char* name : {"t.csv", "link", "other"}) check_kept(in("t.csv"), line({option, in(name)}), option);
  }
  REQUIRE(run_command(line({"--out", in("net"), "--checkpoint", in("run")})).code == 0);
  check_kept(in("run"), line({"--resume", in("run"), "--log", in("run")}), "--log");
  check_kept(in("run"), line({"--resume", in("run"), "--out", in("run")}), "--out");
  check_kept(in("net"), line({"--weights", in("net"), "--checkpoint", in("net")}), "--checkpoint");
  // Where it is meant:
  CHECK(run_command(line({"--weights", in("net"), "--out", in("net")})).code == 0);
  CHECK(run_command(line({"--resume", in("run"), "--checkpoint", in("run"), "--epochs", "2"})).code == 0);

  check_kept(in("net"), {"predict", in("net"), in("t.csv"), "--out", in("net")}, "--out");
  for (const char* command : {"predict", "evaluate"}) {
    for (const char* name : {"net", "t.csv"}) {
      check_kept(in(name), {command, in("net"), in("t.csv"), "--trace", in(name)}, "--trace");
    }
  }
}

TEST_CASE("a sheet replaces no photo, and an output of run no input", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const auto in = [&](const char* name) { return (folder / name).string(); };
  std::filesystem::create_directory(in("photos"));
  write_picture(folder, "photos/a.png", 8, 8, 3, 1);
  for (const char* words : {"photos", "photos/a.png"}) {
    check_kept(in("photos/a.png"), {"predict", "resnet20", in("net"), in(words), "--sheet", in("photos/a.png")},
               "--sheet");
  }
  io::write_npy(in("x.npy"), Tensor(DType::f32, Shape{1, 4}));
  const Arguments run{"run", "mlp", "--input", in("x.npy")};
  check_kept(in("x.npy"), with(run, {"--output", in("x.npy")}), "--output");
  io::write_safetensors(in("w.safetensors"), {{"x", Tensor(DType::f32, Shape{1})}});
  check_kept(in("w.safetensors"), with(run, {"--weights", in("w.safetensors"), "--output", in("w.safetensors")}),
             "--output");
}

TEST_CASE("commands that measure a network's file replace it by no output", "[cli]") {
  if (!command_is_there()) return;
  const TemporaryFolder folder;
  const auto in = [&](const char* name) { return (folder / name).string(); };
  for (const char* name : {"net.onnx", "case"}) write_file(in(name), "none");
  const Arguments device{"--device", cheap_device()}, devices{"--devices", "cpu,cpu"};
  for (const char* command : {"bench", "profile"}) {
    check_kept(in("net.onnx"), with({command, in("net.onnx"), "--trace", in("net.onnx")}, device), "--trace");
  }
  for (const char* option : {"--trace", "--out"}) {
    check_kept(in("net.onnx"), with({"tune", in("net.onnx"), option, in("net.onnx")}, device), option);
  }
  for (const char* option : {"--trace", "--html", "--json", "--save-case"}) {
    check_kept(in("net.onnx"), with({"compare", in("net.onnx"), option, in("net.onnx")}, devices), option);
  }
  check_kept(in("case"), {"replay", in("case"), "--trace", in("case")}, "--trace");
}
