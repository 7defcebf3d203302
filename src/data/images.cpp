// Stored images as samples.
#include "concord/data/images.hpp"

#include "concord/data/image/image_samples.hpp"
#include "concord/data/records/cache.hpp"
#include "concord/data/records/open.hpp"
#include "concord/data/records/shard_names.hpp"

namespace concord::data {

std::int64_t ImageSet::size() const { return records_->size(); }
const std::string& ImageSet::name() const { return records_->name; }
const std::vector<std::string>& ImageSet::class_names() const { return records_->class_names; }
const std::vector<Column>& ImageSet::labels() const { return records_->labels; }
bool ImageSet::has_masks() const { return records_->has_mask(); }
std::string ImageSet::name_of(std::int64_t row) const { return records_->name_of(row); }

ImageSet ImageSet::cached(const CacheBudget& budget, const std::filesystem::path& directory,
                          std::int64_t channels) const {
  return ImageSet(data::cached(records_, {budget.bytes, directory, channels, budget.used}));
}

ImageSet ImageSet::cached(std::uint64_t bytes, const std::filesystem::path& directory, std::int64_t channels) const {
  return cached(CacheBudget(bytes), directory, channels);
}

SharedSamples ImageSet::with(const ImageTransform& transform) const { return ImageSamples(records_, transform); }

ImageSet folder(const std::filesystem::path& directory, const ImageOptions& options) {
  return ImageSet(open_folder(directory, options.list,
                              {.class_names = options.class_names,
                               .masks = options.masks,
                               .mask_classes = options.mask_classes,
                               .numbered_classes = options.numbered_classes}));
}

ImageSet image_files(const std::vector<std::filesystem::path>& paths) { return ImageSet(open_files(paths)); }

ImageSet image_set(const Dataset& dataset) { return ImageSet(open_arrays(dataset)); }

ImageSet lmdb(const std::filesystem::path& path, const ImageOptions& options) {
  return ImageSet(open_lmdb(path, {.class_names = options.class_names, .numbered_classes = options.numbered_classes}));
}
ImageSet tar(const std::string& pattern, const ImageOptions& options) {
  const std::vector<std::string> names = expand_braces(pattern);
  return ImageSet(open_tar({names.begin(), names.end()}, {.class_names = options.class_names,
                                                          .masks_in_shards = options.masks_in_shards,
                                                          .mask_classes = options.mask_classes,
                                                          .numbered_classes = options.numbered_classes}));
}

}  // namespace concord::data
