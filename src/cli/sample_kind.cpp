// Endings of names, and sentences.
#include "concord/cli/sample_kind.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "concord/cli/counted.hpp"
#include "concord/cli/data_spec.hpp"
#include "concord/core/check.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/records/file_tree.hpp"
#include "concord/data/records/image_names.hpp"

namespace concord::cli {
namespace {

bool has_ending(std::string_view name, std::initializer_list<std::string_view> endings) {
  const std::string small = lower(name);
  return std::ranges::any_of(endings, [&](std::string_view ending) { return small.ends_with(ending); });
}

bool is_recording_name(std::string_view name) {
  return has_ending(name, {".wav", ".flac", ".ogg", ".mp3", ".aif", ".aiff", ".aifc", ".opus", ".au"});
}

SampleKind kind_of_name(std::string_view name) {
  if (data::is_image_name(name) || has_ending(name, {".gif", ".webp", ".tif", ".tiff", ".heic"})) {
    return SampleKind::images;
  }
  if (is_recording_name(name)) return SampleKind::recordings;
  if (has_ending(name, {".csv", ".tsv", ".csv.gz", ".tsv.gz"})) return SampleKind::table;
  return SampleKind::unknown;
}

/// "a table with the columns age, town".
std::string trained_on(const SavedNetwork& saved, SampleKind kind) {
  constexpr std::size_t kShown = 8;
  switch (kind) {
    case SampleKind::images: return "images";
    case SampleKind::recordings: return "recordings";
    case SampleKind::text: return "text";
    case SampleKind::unknown: return "other data";
    case SampleKind::table: break;
  }
  if (!saved.trained.table) return "a table";
  std::vector<std::string> names;
  for (const data::CsvEncoding::Input& input : saved.trained.table->inputs) {
    if (names.size() < kShown) names.push_back(printable(input.name));
  }
  const std::size_t others = saved.trained.table->inputs.size() - names.size();
  return fmt::format("a table with the column{} {}{}", names.size() == 1 ? "" : "s", fmt::join(names, ", "),
                     others > 0 ? fmt::format(" and {}", counted(others, "other")) : "");
}

/// "Give images or folders of them: concord predict net.safetensors photo.jpg".
std::string what_to_predict(const SavedNetwork& saved, SampleKind kind) {
  const auto advice = [&](std::string_view what, std::string_view words) {
    return fmt::format("Give {}: concord predict {} {}", what, printable(saved.weights), words);
  };
  switch (kind) {
    case SampleKind::images: return advice("images, or folders of them", "photo.jpg");
    case SampleKind::recordings: return advice("recordings, or folders of them", "sound.wav");
    case SampleKind::table: return advice("a table", "FILE.csv");
    case SampleKind::text: return advice("a text", "--data text:FILE");
    case SampleKind::unknown: break;
  }
  return "Give such data";
}

std::string what_to_evaluate(SampleKind kind) {
  switch (kind) {
    case SampleKind::images: return "Give images: --data folder:DIR, lmdb:DIR or tar:PATTERN";
    case SampleKind::recordings: return "Give recordings: --data audio:LIST";
    case SampleKind::table: return "Give a table: --data csv:FILE";
    case SampleKind::text: return "Give a text: --data text:FILE";
    case SampleKind::unknown: break;
  }
  return "Give such data";
}

/// Names of one kind: "an image", or of a folder "a folder of images".
std::string name_of_kind(SampleKind kind, bool is_folder) {
  switch (kind) {
    case SampleKind::images: return is_folder ? "a folder of images" : "an image";
    case SampleKind::recordings: return is_folder ? "a folder of recordings" : "a recording";
    case SampleKind::table: return is_folder ? "a folder of tables" : "a table";
    case SampleKind::text: return "a text";
    case SampleKind::unknown: break;
  }
  return is_folder ? "a folder" : "a file";
}

}  // namespace

SampleKind kind_of(const Trained& trained, const models::Model& model) {
  if (trained.table) return SampleKind::table;
  if (trained.audio) return SampleKind::recordings;
  if (trained.preprocessing) return SampleKind::images;
  return model.task == models::Task::language ? SampleKind::text : SampleKind::unknown;
}

SampleKind kind_of_file(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_directory(file, error)) return kind_of_name(file.string());
  SampleKind kind = SampleKind::unknown;
  constexpr int kMost = 10'000;  // entries
  int entries = 0;
  constexpr auto kOptions = std::filesystem::directory_options::skip_permission_denied;
  for (std::filesystem::recursive_directory_iterator at(file, kOptions, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code of_entry;
    if (at->is_regular_file(of_entry)) kind = kind_of_name(at->path().string());
    if (kind != SampleKind::unknown || ++entries == kMost) break;
  }
  return kind;
}

SampleKind kind_of_data(std::string_view kind) {
  if (kind == "folder" || kind == "lmdb" || kind == "tar") return SampleKind::images;
  if (kind == "csv") return SampleKind::table;
  if (kind == "audio") return SampleKind::recordings;
  return kind == "text" ? SampleKind::text : SampleKind::unknown;
}

void check_files_fit(const SavedNetwork& saved, const std::vector<std::string>& files) {
  const SampleKind wanted = kind_of(saved.trained, *saved.model);
  for (const std::string& file : files) {
    const bool is_folder = std::filesystem::is_directory(file);
    const SampleKind kind = kind_of_file(file);
    CONCORD_CHECK(
        is_folder || !has_ending(file, {".npy", ".npz"}), ArgumentError,
        "{} has arrays: predict takes one .npy file of features alone, or --data with npy:FEATURES.npy,LABELS.npy "
        "or npz:FILE",
        printable(file));
    if (wanted == SampleKind::unknown) {
      CONCORD_CHECK(kind == SampleKind::unknown || kind == SampleKind::images, ArgumentError,
                    "{} does not say what it was trained on, so files are images; {} is {}. Give images, or a data set "
                    "with --data",
                    printable(saved.weights), printable(file), name_of_kind(kind, is_folder));
      continue;
    }
    CONCORD_CHECK(wanted != SampleKind::text || kind != SampleKind::unknown || is_folder, ArgumentError,
                  "{0} was trained on text, which is given with --data: concord predict {0} --data text:{1}",
                  printable(saved.weights), printable(file));
    const bool is_no_table = wanted == SampleKind::table && is_folder;
    CONCORD_CHECK(!is_no_table && wanted != SampleKind::text && (kind == SampleKind::unknown || kind == wanted),
                  ArgumentError, "{} was trained on {}; {} is {}. {}", printable(saved.weights),
                  trained_on(saved, wanted), printable(file), name_of_kind(kind, is_folder),
                  what_to_predict(saved, wanted));
  }
}

void check_data_fits(const SavedNetwork& saved, const std::string& data, std::string_view command) {
  const SampleKind wanted = kind_of(saved.trained, *saved.model), kind = kind_of_data(DataSpec::parse(data).kind);
  if (wanted == SampleKind::unknown || kind == SampleKind::unknown || kind == wanted) return;
  throw ArgumentError(fmt::format("{} was trained on {}; --data {} has {}. {}", printable(saved.weights),
                                  trained_on(saved, wanted), printable(data), trained_on({}, kind),
                                  command == "predict" ? what_to_predict(saved, wanted) : what_to_evaluate(wanted)));
}

std::vector<std::string> recordings_in(const std::vector<std::string>& files) {
  std::vector<std::string> all;
  for (const std::string& file : files) {
    if (!std::filesystem::is_directory(file)) {
      all.push_back(file);
      continue;
    }
    const data::FileTree tree = data::list_tree(file, is_recording_name);
    CONCORD_CHECK(tree.paths.size() > 0, ArgumentError, "{}: no recording was found", printable(file));
    for (std::size_t i = 0; i < tree.paths.size(); ++i) {
      all.push_back((std::filesystem::path(file) / tree.paths[i]).string());
    }
  }
  return all;
}

}  // namespace concord::cli
