// Shards: tar files of about one size, numbered.
#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "concord/cli/data/pack_files.hpp"
#include "concord/cli/data/pack_output.hpp"
#include "concord/core/check.hpp"
#include "concord/core/log.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/records/class_file.hpp"
#include "concord/data/records/write_tar.hpp"

namespace concord::cli {
namespace {

/// "x-%06d.tar" taken apart.
struct ShardName {
  std::string before, after;  // of the name without its folder
  int digits = 0;
  bool has_number = false;

  explicit ShardName(const std::string& name) : before(name) {
    const std::size_t sign = name.find('%');
    if (sign == std::string::npos) return;
    const std::size_t end = name.find('d', sign);
    const std::string width = end == std::string::npos ? "" : name.substr(sign + 1, end - sign - 1);
    const auto number = number_in_text<int>(width);
    const bool is_number = width.empty() || (width.starts_with('0') && number && *number >= 1 && *number <= 18);
    CONCORD_CHECK(end != std::string::npos && is_number && name.find('%', end) == std::string::npos, ArgumentError,
                  "\"{}\": the number of a shard is written as %d, or with zeros in front as %06d, once",
                  printable(name));
    before = name.substr(0, sign);
    after = name.substr(end + 1);
    digits = number.value_or(1);
    has_number = true;
  }
  [[nodiscard]] std::string at(std::size_t shard) const {
    return has_number ? fmt::format("{}{:0{}}{}", before, shard, digits, after) : before;
  }
  [[nodiscard]] bool matches(std::string_view name) const {
    if (!has_number) return name == before;
    if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after))
      return false;
    const std::string_view number = name.substr(before.size(), name.size() - before.size() - after.size());
    return std::ranges::all_of(number, is_digit);
  }
};

class ShardOutput final : public PackOutput {
 public:
  ShardOutput(const std::filesystem::path& out, const PackLabels& labels, const ShardLimits& limits, bool is_forced)
      : folder_(out.parent_path()), name_(out.filename().string()), labels_(labels), limits_(limits) {
    CONCORD_CHECK(name_.has_number || !limits.are_given, ArgumentError,
                  "{} is one shard; for several of them put their number into the name, as in x-%06d.tar",
                  printable(out.string()));
    std::error_code error;
    CONCORD_CHECK(std::filesystem::is_directory(folder_.empty() ? "." : folder_, error), IoError,
                  "there is no folder {}", printable(folder_.string()));
    std::vector<std::filesystem::path> killed;  // of a run that was killed
    std::vector<std::filesystem::path> others;  // shards of other sets
    for (const std::filesystem::path& path : paths_in(folder_.empty() ? "." : folder_)) {
      const std::string file = path.filename().string();
      if (name_.matches(file)) {
        old_.push_back(path);
      } else if (path.extension() == ".tar") {
        others.push_back(path);
      }
      const std::string_view whole = std::string_view(file).substr(0, file.rfind('.'));
      if (file.ends_with(kIncomplete) && name_.matches(whole)) killed.push_back(path);
    }
    CONCORD_CHECK(old_.empty() || is_forced, IoError, "{} is there already; --force writes over it",
                  printable(old_.empty() ? "" : old_[0].string()));
    check_class_file(folder_, labels_.class_names(), is_forced, others);
    for (const std::filesystem::path& path : killed) {
      std::filesystem::remove(path, error);
      CONCORD_CHECK(!error, IoError, "cannot remove {}, which a run left that was killed: {}", printable(path.string()),
                    error.message());
    }
    if (labels.columns() > 1) {
      log(LogLevel::warning, "the json of each sample has all labels, but tar: reads the first of them");
    }
  }
  ~ShardOutput() override {
    writer_.reset();
    std::error_code ignored;
    for (std::size_t i = 0; !is_finished_ && i < shards_; ++i) std::filesystem::remove(temporary(i), ignored);
  }

  void add(const std::string& key, std::int64_t row, const PackedSample& sample) override {
    const std::string label = labels_.are_classes() ? labels_.text(0, row) : labels_.json(row);
    constexpr std::uint64_t kBlock = 512;
    const auto blocks = [](std::size_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock + kBlock; };
    std::uint64_t bytes = blocks(sample.bytes.size()) + blocks(label.size());
    if (!sample.mask.empty()) bytes += blocks(sample.mask.size());
    const bool is_full = samples_ > 0 && ((limits_.samples > 0 && samples_ == limits_.samples) ||
                                          (limits_.samples == 0 && bytes_ + bytes > limits_.bytes));
    if (writer_ != nullptr && is_full && name_.has_number) end_shard();
    if (writer_ == nullptr) {
      writer_ = std::make_unique<data::TarWriter>(temporary(shards_), true);
      ++shards_;
    }
    writer_->add(key, sample.extension, bytes_of(sample.bytes));
    writer_->add(key, labels_.are_classes() ? "cls" : "json", bytes_of(label));
    if (!sample.mask.empty()) writer_->add(key, "seg.png", bytes_of(sample.mask));
    bytes_ += bytes;
    ++samples_;
  }

  void finish() override {
    if (writer_ != nullptr) end_shard();
    is_finished_ = true;  // from here on nothing is taken back
    write_class_file(folder_, labels_.class_names());
    for (std::size_t i = 0; i < shards_; ++i) std::filesystem::rename(temporary(i), folder_ / name_.at(i));
    for (const std::filesystem::path& old : old_) {  // of a set that had more shards
      bool is_new = false;
      for (std::size_t i = 0; i < shards_ && !is_new; ++i) is_new = old.filename() == name_.at(i);
      if (!is_new) std::filesystem::remove(old);
    }
  }

  [[nodiscard]] std::string spec() const override {
    if (!name_.has_number || shards_ == 1) return fmt::format("tar:{}", (folder_ / name_.at(0)).string());
    const std::string numbers = fmt::format("{{{:0{}}..{:0{}}}}", 0, name_.digits, shards_ - 1, name_.digits);
    return fmt::format("tar:{}", (folder_ / (name_.before + numbers + name_.after)).string());
  }
  [[nodiscard]] std::string what() const override {
    return shards_ == 1 ? "1 shard" : fmt::format("{} shards", shards_);
  }

 private:
  void end_shard() {
    writer_->finish();
    writer_.reset();
    bytes_ = 0;
    samples_ = 0;
  }
  [[nodiscard]] std::filesystem::path temporary(std::size_t shard) const {
    return folder_ / (name_.at(shard) + std::string(kIncomplete));
  }

  std::filesystem::path folder_;
  ShardName name_;
  const PackLabels& labels_;
  ShardLimits limits_;
  std::vector<std::filesystem::path> old_;
  std::unique_ptr<data::TarWriter> writer_;
  std::size_t shards_ = 0;  // begun
  std::uint64_t bytes_ = 0;
  std::int64_t samples_ = 0;  // of the shard
  bool is_finished_ = false;
};

}  // namespace

std::unique_ptr<PackOutput> pack_into_shards(const std::string& out, const PackLabels& labels,
                                             const ShardLimits& limits, bool is_forced) {
  return std::make_unique<ShardOutput>(out, labels, limits, is_forced);
}

}  // namespace concord::cli
