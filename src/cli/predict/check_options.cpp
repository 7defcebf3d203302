// Options of `concord predict` that do not go together.
#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "concord/cli/label_outputs.hpp"
#include "concord/cli/predict/results.hpp"
#include "concord/cli/sample_kind.hpp"
#include "concord/core/check.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"

namespace concord::cli {
namespace {

/// A name without an ending is the user's own choice.
void check_ending(std::string_view option, const std::string& file, std::string_view wanted) {
  const std::string ending = lower(std::filesystem::path(file).extension().string());
  CONCORD_CHECK(ending.empty() || ending == wanted, ArgumentError,
                "{} {}: its name has to end in {}, as what is written", option, printable(file), wanted);
}

/// What a network in an ONNX file has to be.
void check_file(const SavedNetwork& saved, const onnx::Network& file) {
  const std::string name = printable(saved.model->name);
  const bool has_one_input = file.inputs().size() == 1 && onnx::dtype_of(file.inputs()[0].type) == DType::f32;
  CONCORD_CHECK(has_one_input, NotSupported,
                "predict needs an ONNX file with one input of floats; {} has {}. `concord run` takes any inputs", name,
                text_of_declarations(file.inputs()));
  CONCORD_CHECK(saved.model->classes > 0, NotSupported,
                "predict needs an ONNX file with one output of floats (N, classes); {} has {}. `concord run` computes "
                "any outputs",
                name, text_of_declarations(file.outputs()));
}

/// The tasks that have predictions as text.
void check_task(const SavedNetwork& saved, bool has_files) {
  using enum models::Task;
  const models::Task task = saved.model->task;
  if (const onnx::Network* const file = file_of(*saved.model)) check_file(saved, *file);
  const bool is_of_files =
      task == classification || task == segmentation || (task == transcription && saved.trained.audio);
  CONCORD_CHECK(is_of_files || (!has_files && (task == language || task == transcription)), ArgumentError,
                "predict needs a network for {}; {} is a network for {}",
                has_files ? "classes of images or pixels, or for recordings" : "classes, words or transcripts",
                saved.model->name, models::name_of(task));
}

}  // namespace

void PredictArguments::refuse_top(std::string_view predicts) const {
  CONCORD_CHECK(top_option->count() == 0, ArgumentError,
                "--top names the likeliest classes; this network {}, so leave --top out", predicts);
}

void PredictArguments::check(const SavedNetwork& saved, bool has_files) const {
  CONCORD_CHECK(!json || format_option->count() == 0 || format == "json", ArgumentError,
                "--json contradicts --format {}", format);
  check_ending("--out", out, ".safetensors");
  check_ending("--sheet", sheet, ".png");
  if (has_files) check_files_fit(saved, words);
  check_task(saved, has_files);
  const models::Task task = saved.model->task;
  CONCORD_CHECK(generate == 0 || task == models::Task::language, ArgumentError,
                "--generate continues texts; {} is a network for {}", saved.model->name, models::name_of(task));
  if (generate > 0) refuse_top("writes on with the likeliest one");
  if (task == models::Task::transcription) refuse_top("writes transcripts");
  if (task == models::Task::segmentation) refuse_top("gives the pixels of all classes");
  if (saved.trained.has_targets) refuse_top("predicts numbers");
  if (saved.trained.table) {
    if (label_outputs_of(*saved.trained.table).size() > 1) refuse_top("predicts several labels");
    if (saved.trained.table->labels.size() > 0 && saved.trained.table->labels[0].classes.empty()) {
      refuse_top("predicts numbers");
    }
  }
  const SampleKind kind = kind_of(saved.trained, *saved.model);
  CONCORD_CHECK(sheet.empty() || kind != SampleKind::table, ArgumentError,
                "--sheet shows pictures; {} was trained on a table", printable(saved.weights));
  if (!has_files) return;
  for (const auto& [option, name] :
       {std::pair(first_option, "--first"), std::pair(count_option, "--count"), std::pair(split_option, "--split")}) {
    CONCORD_CHECK(option->count() == 0, ArgumentError,
                  "{} is for samples of --data; of files all are predicted, so leave it out or give --data", name);
  }
  CONCORD_CHECK((data.image == 0 && data.resize == 0 && data.mean.empty()) ||
                    (kind != SampleKind::recordings && kind != SampleKind::table),
                ArgumentError, "--image, --resize and --mean are for images; {} was trained on {}",
                printable(saved.weights), kind == SampleKind::table ? "a table" : "recordings");
}

}  // namespace concord::cli
