// A database of Caffe's Datum.
#include <fmt/format.h>

#include "concord/cli/data/pack_files.hpp"
#include "concord/cli/data/pack_output.hpp"
#include "concord/core/check.hpp"
#include "concord/data/records/class_file.hpp"
#include "concord/data/records/datum.hpp"
#include "concord/data/records/write_lmdb.hpp"

namespace concord::cli {
namespace {

bool is_of_database(const std::filesystem::path& name) {
  return name == "data.mdb" || name == "lock.mdb" || name == data::kClassFile || name.extension() == ".idx";
}

class LmdbOutput final : public PackOutput {
 public:
  LmdbOutput(const std::string& out, const PackLabels& labels, bool is_forced)
      : labels_(labels), folder_(out, is_forced, is_of_database) {
    CONCORD_CHECK(labels.are_classes(), ArgumentError,
                  "a database of Datum has one class for each image; {}: pack them into shards or a folder",
                  labels.columns() > 1 ? "this set has several labels" : "this set has targets");
    check_class_file(folder_.temporary(), labels.class_names(), true);
    writer_ = std::make_unique<data::LmdbWriter>(folder_.temporary());
  }
  ~LmdbOutput() override { writer_.reset(); }  // before the folder is removed

  void add(const std::string& key, std::int64_t row, const PackedSample& sample) override {
    const std::int32_t label = labels_.class_of(row);
    writer_->add(key, bytes_of(sample.raw ? data::datum_of(*sample.raw, bytes_of(sample.bytes), label)
                                          : data::datum_of(bytes_of(sample.bytes), label)));
  }
  void finish() override {
    writer_->finish();
    writer_.reset();
    write_class_file(folder_.temporary(), labels_.class_names());
    folder_.finish();
  }
  [[nodiscard]] std::string spec() const override { return fmt::format("lmdb:{}", folder_.path().string()); }
  [[nodiscard]] std::string what() const override { return "a database"; }

 private:
  const PackLabels& labels_;
  NewFolder folder_;
  std::unique_ptr<data::LmdbWriter> writer_;
};

}  // namespace

std::unique_ptr<PackOutput> pack_into_lmdb(const std::string& out, const PackLabels& labels, bool is_forced) {
  return std::make_unique<LmdbOutput>(out, labels, is_forced);
}

}  // namespace concord::cli
