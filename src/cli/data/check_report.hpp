// What `concord data check` finds, and how it is told: as text, as JSON and as a page.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace concord::cli {

/// Samples that are equal.
struct DuplicateGroup {
  struct Member {
    std::size_t part = 0;
    std::int64_t row = 0;
    std::string name;
    std::string label;
  };
  std::vector<Member> members;  // by part, then by row
  bool is_across_parts = false;
  bool has_other_labels = false;  // they do not all have the same label
  bool has_equal_bytes = false;   // of the files; else only the pixels are equal
};

struct BadSample {
  std::string part, name, reason;
};

struct CheckedPart {
  std::string name, source;
  std::int64_t samples = 0, bad = 0;
  std::uint64_t bytes = 0;                 // of images, as stored
  std::vector<std::int64_t> class_counts;  // bad samples too
};

/// A column of numbers or categories.
struct CheckedColumn {
  std::string part, name, role, type;  // role: "feature", "label"
  std::int64_t values = 0, missing = 0;
  std::optional<double> least, largest, mean, deviation;
};

/// Sizes and formats of all images that can be read.
struct CheckedImages {
  struct Size {
    std::int64_t width = 0, height = 0;
    std::string name;
  };
  Size smallest, largest;  // by their area
  std::int64_t median_width = 0, median_height = 0;
  std::map<std::string, std::int64_t> formats;  // "JPEG, colour"
  std::map<std::string, std::int64_t> special;  // "turned by EXIF"
  struct Bin {
    std::int64_t first = 0, last = 0, count = 0;  // of the shorter side
  };
  std::vector<Bin> shorter_sides;
  // Of the first part, for the options; each image counts alike.
  std::vector<double> mean, deviation;
};

/// Pixels of all masks that can be read.
struct CheckedMasks {
  int classes = 0;                   // that the spec gives; 0: none, and then numbers are not checked
  std::vector<std::int64_t> pixels;  // of each class, up to the largest that there is, or to `classes`
  std::int64_t no_class = 0;         // pixels of the number 255
  [[nodiscard]] std::int64_t all() const;
};

struct Thumbnail {
  std::string name, label, url;  // data:image/jpeg;base64,…
  std::size_t class_index = 0;
  std::int64_t width = 0, height = 0;  // of the image
};

struct CheckReport {
  std::string spec;
  std::vector<CheckedPart> parts;
  std::vector<std::string> class_names;  // names, or the indices; empty where the labels are no classes
  std::optional<CheckedImages> images;
  std::optional<CheckedMasks> masks;
  std::vector<CheckedColumn> columns;  // of other data
  std::vector<BadSample> bad;
  std::vector<DuplicateGroup> duplicates;  // those across parts first
  std::vector<std::string> warnings;       // of the library, while the set was opened
  std::vector<Thumbnail> thumbnails;       // for the page alone

  [[nodiscard]] std::int64_t samples() const;
  /// Groups whose members are in several parts.
  [[nodiscard]] std::int64_t leaks() const;
  /// Of the first part: the largest class by the smallest one that is not empty; 1 without classes.
  [[nodiscard]] double imbalance() const;
  /// "--class-weights balanced" is worth a word from here on.
  static constexpr double kUnbalanced = 2;
};

[[nodiscard]] std::string check_text(const CheckReport& report);
[[nodiscard]] std::string check_json(const CheckReport& report);
/// One page that needs no other file.
[[nodiscard]] std::string check_page(const CheckReport& report);

/// "--mean 0.485,0.456,0.406 --deviation 0.229,0.224,0.225"
[[nodiscard]] std::string normalisation_options(const CheckedImages& images);

}  // namespace concord::cli
