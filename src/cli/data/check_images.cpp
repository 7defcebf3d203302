// Images: every one is read and decoded by all threads; what is found is put together in the order of the samples.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>

#include "concord/cli/data/check_samples.hpp"
#include "concord/cli/data/image_facts.hpp"
#include "concord/cli/data/rows.hpp"
#include "concord/cli/data/thumbnail.hpp"
#include "concord/core/log.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/image/mask.hpp"

namespace concord::cli {
namespace {

constexpr std::size_t kThumbnailsAClass = 12, kMostThumbnails = 400;

/// All samples of the parts in one row of numbers.
struct AllImages {
  explicit AllImages(const std::vector<StoredPart>& stored) : parts(stored) {
    for (const StoredPart& part : parts) {
      begins.push_back(size);
      size += part.size();
    }
  }
  [[nodiscard]] std::size_t part_of(std::int64_t i) const {
    return static_cast<std::size_t>(std::ranges::upper_bound(begins, i) - begins.begin()) - 1;
  }
  [[nodiscard]] const data::Records& records(std::size_t part) const { return *parts[part].images; }

  const std::vector<StoredPart>& parts;
  std::vector<std::int64_t> begins;
  std::int64_t size = 0;
};

/// What is shown of a label; nothing of a mask.
std::string label_title(const data::Records& records, std::int64_t row, const std::vector<std::string>& classes) {
  if (records.has_mask() && classes.empty()) return {};
  const Column& labels = records.labels[0];
  const std::int64_t width = labels.values.elements() / labels.values.shape()[0];
  if (labels.values.dtype() == DType::i32) {
    const auto label =
        static_cast<std::size_t>(labels.values.values<std::int32_t>()[static_cast<std::size_t>(row * width)]);
    return label < classes.size() ? classes[label] : fmt::format("{}", label);
  }
  return fmt::format("{}", labels.values.values<float>()[static_cast<std::size_t>(row * width)]);
}

/// Samples that are evenly spaced in each class of the first part.
std::map<std::int64_t, std::size_t> chosen_rows(const StoredPart& part, std::size_t classes) {
  std::vector<std::vector<std::int64_t>> rows(std::max<std::size_t>(classes, 1));
  const Column& labels = part.images->labels[0];
  for (std::int64_t row = 0; row < part.size(); ++row) {
    const auto label =
        classes == 0 ? 0
                     : static_cast<std::size_t>(labels.values.values<std::int32_t>()[static_cast<std::size_t>(row)]);
    if (label < rows.size()) rows[label].push_back(row);
  }
  const std::size_t most = std::clamp<std::size_t>(kMostThumbnails / rows.size(), 1, kThumbnailsAClass);
  std::map<std::int64_t, std::size_t> chosen;
  for (std::size_t label = 0; label < rows.size() && chosen.size() < kMostThumbnails; ++label) {
    const std::size_t count = std::min(most, rows[label].size());
    for (std::size_t i = 0; i < count && chosen.size() < kMostThumbnails; ++i)
      chosen.emplace(rows[label][i * rows[label].size() / count], label);
  }
  return chosen;
}

std::string format_title(const ImageFacts& facts) {
  constexpr std::array kKinds = {"", "grey", "grey with alpha", "colour", "four channels"};
  return fmt::format("{}, {}", format_name(facts), kKinds[std::min<std::size_t>(facts.channels, 4)]);
}

/// Ranges of the shorter side: at most twelve, or single sizes where there are few.
std::vector<CheckedImages::Bin> bins_of(const std::vector<std::int64_t>& sorted) {
  constexpr std::int64_t kMostBins = 12;
  const std::int64_t least = sorted.front(), most = sorted.back();
  const std::int64_t width = std::max<std::int64_t>(1, (most - least + kMostBins) / kMostBins);
  std::vector<CheckedImages::Bin> bins;
  for (std::int64_t first = least; first <= most; first += width)
    bins.push_back({first, std::min(first + width - 1, most), 0});
  for (const std::int64_t side : sorted) ++bins[static_cast<std::size_t>((side - least) / width)].count;
  return bins;
}

std::int64_t middle_of(std::vector<std::int64_t> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Mean and deviation of the first `count` images, which have the same weight whatever their size: after resizing they
/// are alike.
void normalise(const std::vector<ImageFacts>& facts, std::size_t count, CheckedImages& images) {
  std::array<double, 3> mean{}, square{};
  double good = 0;
  bool is_colour = false;
  for (std::size_t i = 0; i < count; ++i) {
    if (!facts[i].is_good) continue;
    is_colour = is_colour || facts[i].channels >= 3;
    good += 1;
    for (std::size_t c = 0; c < 3; ++c) {
      mean[c] += facts[i].mean[c];
      square[c] += facts[i].square[c];
    }
  }
  if (good == 0) return;
  for (std::size_t c = 0; c < (is_colour ? 3U : 1U); ++c) {
    images.mean.push_back(mean[c] / good);
    images.deviation.push_back(std::sqrt(std::max(0.0, square[c] / good - images.mean[c] * images.mean[c])));
  }
}

/// The titles of the classes of a part; none where masks say the classes and images have no names of their own.
std::vector<std::string> titles_of(const StoredPart& part) {
  const data::Records& records = *part.images;
  if (records.has_mask() && records.class_names.empty()) return {};
  return class_titles(records.labels[0], records.class_names);
}

/// The pixels of masks that the threads have counted.
CheckedMasks masks_among(const data::Records& records, const std::vector<ImageMemory>& memories) {
  CheckedMasks masks;
  masks.classes = records.mask_classes;
  std::array<std::int64_t, 256> pixels{};
  for (const ImageMemory& memory : memories) {
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] += memory.mask_pixels[i];
  }
  masks.no_class = pixels[data::kNoClass];
  std::size_t end = data::kNoClass;
  while (end > static_cast<std::size_t>(masks.classes) && pixels[end - 1] == 0) --end;
  masks.pixels.assign(pixels.begin(), pixels.begin() + static_cast<std::ptrdiff_t>(end));
  return masks;
}

/// What is not known, and what no pixel has.
void warn_of_masks(const std::string& spec, const CheckedMasks& masks) {
  if (masks.all() == 0) return;
  if (masks.classes == 0) {
    log(LogLevel::warning,
        fmt::format("{}: the number of classes is not given, so that the numbers in masks are not checked; the largest "
                    "is {}: add classes={}",
                    spec, std::ssize(masks.pixels) - 1, std::max<std::ptrdiff_t>(2, std::ssize(masks.pixels))));
  }
  std::string absent;
  for (std::size_t i = 0; i < masks.pixels.size(); ++i) {
    if (masks.pixels[i] == 0) absent += fmt::format("{}{}", absent.empty() ? "" : ", ", i);
  }
  if (absent.empty()) return;
  log(LogLevel::warning,
      fmt::format("{}: no mask has a pixel of the classes {}{}", spec, absent,
                  masks.no_class > 0 ? "; 255 means no class: write a smaller number if it is one" : ""));
}

CheckedImages images_among(const AllImages& all, const std::vector<ImageFacts>& facts) {
  CheckedImages images;
  std::vector<std::int64_t> widths, heights, sides;
  const auto area = [](const ImageFacts& f) { return std::int64_t{f.height} * f.width; };
  std::optional<std::size_t> smallest, largest;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const ImageFacts& one = facts[i];
    if (!one.is_good) continue;
    if (!smallest || area(one) < area(facts[*smallest])) smallest = i;
    if (!largest || area(one) > area(facts[*largest])) largest = i;
    widths.push_back(one.width);
    heights.push_back(one.height);
    sides.push_back(std::min(one.width, one.height));
    ++images.formats[format_title(one)];
    if (one.orientation != 1) ++images.special["turned by EXIF (shown upright)"];
    if (one.bits > 8) ++images.special["more than 8 bits a channel (the upper 8 are used)"];
    if (!one.is_raw && one.channels == 4 && one.format == data::ImageFormat::jpeg)
      ++images.special["CMYK (converted to RGB)"];
    if (!one.is_raw && (one.channels == 2 || (one.channels == 4 && one.format != data::ImageFormat::jpeg)))
      ++images.special["alpha channel (left out)"];
  }
  if (!smallest) return images;
  const auto size_of = [&](std::size_t i) {
    const std::size_t part = all.part_of(static_cast<std::int64_t>(i));
    return CheckedImages::Size{facts[i].width, facts[i].height,
                               all.records(part).name_of(static_cast<std::int64_t>(i) - all.begins[part])};
  };
  images.smallest = size_of(*smallest);
  images.largest = size_of(*largest);
  images.median_width = middle_of(widths);
  images.median_height = middle_of(heights);
  std::ranges::sort(sides);
  images.shorter_sides = bins_of(sides);
  normalise(facts, static_cast<std::size_t>(all.parts[0].size()), images);
  return images;
}

}  // namespace

std::vector<std::string> class_titles(const Column& labels, const std::vector<std::string>& names) {
  std::vector<std::string> titles;
  if (labels.values.dtype() != DType::i32 || labels.values.shape().rank() != 1) return titles;
  for (int i = 0; i < labels.classes; ++i) {
    titles.push_back(static_cast<std::size_t>(i) < names.size() ? names[static_cast<std::size_t>(i)]
                                                                : fmt::format("{}", i));
  }
  return titles;
}

std::vector<std::int64_t> class_counts_of(const Column& labels, std::size_t classes) {
  std::vector<std::int64_t> counts(classes);
  if (classes == 0) return counts;
  for (const std::int32_t label : labels.values.values<std::int32_t>()) {
    if (label >= 0 && static_cast<std::size_t>(label) < classes) ++counts[static_cast<std::size_t>(label)];
  }
  return counts;
}

void check_images(const std::vector<StoredPart>& parts, const CheckOptions& options, CheckReport& report) {
  const AllImages all(parts);
  for (const StoredPart& part : parts) {  // a part may have more classes than another, where they have no names
    const std::vector<std::string> titles = titles_of(part);
    if (titles.size() > report.class_names.size()) report.class_names = titles;
  }
  const auto has_other_names = [&](const StoredPart& part) {
    return part.images->class_names != parts[0].images->class_names;
  };
  const bool has_masks = all.records(0).has_mask();  // then folders, such as those of cities, need not be the same
  if (has_masks && std::ranges::any_of(parts, has_other_names)) report.class_names.clear();
  const std::map<std::int64_t, std::size_t> chosen =
      options.has_thumbnails ? chosen_rows(parts[0], report.class_names.size()) : std::map<std::int64_t, std::size_t>();
  std::vector<ImageFacts> facts(static_cast<std::size_t>(all.size));
  std::map<std::int64_t, std::string> reasons;
  std::map<std::int64_t, Thumbnail> thumbnails;
  std::mutex mutex;  // guards the maps
  std::vector<ImageMemory> memories(static_cast<std::size_t>(options.threads));
  {
    RowProgress progress("checked", all.size, options.is_quiet);
    for_rows(all.size, options.threads, [&](std::int64_t i, std::size_t thread) {
      const std::size_t part = all.part_of(i);
      const data::Records& records = all.records(part);
      const std::int64_t row = i - all.begins[part];
      ImageFacts& one = facts[static_cast<std::size_t>(i)];
      const std::string reason = examine(records, row, memories[thread], one);
      if (!reason.empty()) {
        const std::lock_guard lock(mutex);
        reasons.emplace(i, reason);
      } else if (const auto found = chosen.find(i); found != chosen.end()) {
        Thumbnail thumbnail{records.name_of(row),
                            label_title(records, row, report.class_names),
                            thumbnail_url(memories[thread].image),
                            found->second,
                            one.width,
                            one.height};
        const std::lock_guard lock(mutex);
        thumbnails.emplace(i, std::move(thumbnail));
      }
      progress.add();
    });
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    report.parts.push_back({parts[p].name, parts[p].images->name, parts[p].size(), 0, 0,
                            class_counts_of(parts[p].images->labels[0], report.class_names.size())});
  }
  for (const auto& [i, reason] : reasons) {
    const std::size_t part = all.part_of(i);
    ++report.parts[part].bad;
    report.bad.push_back({parts[part].name, all.records(part).name_of(i - all.begins[part]), reason});
  }
  std::vector<SeenSample> seen;
  for (std::int64_t i = 0; i < all.size; ++i) {
    const ImageFacts& one = facts[static_cast<std::size_t>(i)];
    if (!one.is_good) continue;
    const std::size_t part = all.part_of(i);
    report.parts[part].bytes += one.bytes;
    seen.push_back({one.stored, one.pixels, part, i - all.begins[part]});
  }
  report.duplicates = duplicates_among(std::move(seen), [&](const SeenSample& sample) {
    const data::Records& records = all.records(sample.part);
    return DuplicateGroup::Member{sample.part, sample.row, records.name_of(sample.row),
                                  label_title(records, sample.row, report.class_names)};
  });
  report.images = images_among(all, facts);
  if (has_masks) {
    report.masks = masks_among(all.records(0), memories);
    warn_of_masks(printable(report.spec), *report.masks);
  }
  for (auto& [i, thumbnail] : thumbnails) report.thumbnails.push_back(std::move(thumbnail));
}

}  // namespace concord::cli
