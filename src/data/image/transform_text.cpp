// ImageAugmentation as text: "rrc,flip,jitter=0.4:0.4:0.4:0.1".
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <span>

#include "concord/core/check.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/image/transform.hpp"

namespace concord::data {
namespace {

/// One name of a text with its numbers.
using AugmentNumbers = std::span<const double>;

struct AugmentName {
  std::string_view name, form;
  std::size_t least, most;  // numbers that it takes
  void (*set)(ImageAugmentation& augmentation, AugmentNumbers numbers);
};

double number_or(AugmentNumbers numbers, std::size_t index, double otherwise) {
  return index < numbers.size() ? numbers[index] : otherwise;
}

std::int64_t whole_number(std::string_view name, double number) {
  CONCORD_CHECK(std::abs(number) <= 1e6 && number == std::floor(number), ArgumentError,
                "{} takes whole numbers, not {}", name, number);
  return static_cast<std::int64_t>(number);
}

RandomAffine& affine_of(ImageAugmentation& augmentation) {
  if (!augmentation.affine) augmentation.affine.emplace();
  return *augmentation.affine;
}

constexpr auto kAugmentNames = std::to_array<AugmentName>({
    {"rrc", "rrc[=SMALLEST[:LARGEST]]", 0, 2,
     [](ImageAugmentation& to, AugmentNumbers numbers) {
       const RandomResizedCrop usual;
       to.resized_crop = RandomResizedCrop{number_or(numbers, 0, usual.smallest), number_or(numbers, 1, usual.largest)};
     }},
    {"crop", "crop=PIXELS", 1, 1,
     [](ImageAugmentation& to, AugmentNumbers numbers) { to.crop = whole_number("crop", numbers[0]); }},
    {"flip", "flip[=P]", 0, 1,
     [](ImageAugmentation& to, AugmentNumbers numbers) { to.flip = number_or(numbers, 0, 0.5); }},
    {"vflip", "vflip[=P]", 0, 1,
     [](ImageAugmentation& to, AugmentNumbers numbers) { to.vertical_flip = number_or(numbers, 0, 0.5); }},
    {"randaugment", "randaugment[=OPERATIONS[:MAGNITUDE]]", 0, 2,
     [](ImageAugmentation& to, AugmentNumbers numbers) {
       to.rand_augment = RandAugment{static_cast<int>(whole_number("randaugment", number_or(numbers, 0, 2))),
                                     static_cast<int>(whole_number("randaugment", number_or(numbers, 1, 9)))};
     }},
    {"rotate", "rotate=DEGREES", 1, 1,
     [](ImageAugmentation& to, AugmentNumbers numbers) { affine_of(to).degrees = numbers[0]; }},
    {"shear", "shear=DEGREES", 1, 1,
     [](ImageAugmentation& to, AugmentNumbers numbers) { affine_of(to).shear = numbers[0]; }},
    {"affine", "affine=DEGREES[:TRANSLATE[:SMALLEST:LARGEST[:SHEAR]]]", 1, 5,
     [](ImageAugmentation& to, AugmentNumbers numbers) {
       CONCORD_CHECK(numbers.size() != 3, ArgumentError,
                     "affine takes the smallest and the largest scale, and has only one of them");
       to.affine = RandomAffine{numbers[0], number_or(numbers, 1, 0), number_or(numbers, 2, 1),
                                number_or(numbers, 3, 1), number_or(numbers, 4, 0)};
     }},
    {"jitter", "jitter=BRIGHTNESS[:CONTRAST[:SATURATION[:HUE]]]", 1, 4,
     [](ImageAugmentation& to, AugmentNumbers numbers) {
       to.jitter =
           ColourJitter{numbers[0], number_or(numbers, 1, 0), number_or(numbers, 2, 0), number_or(numbers, 3, 0)};
     }},
    {"cutout", "cutout=PART", 1, 1, [](ImageAugmentation& to, AugmentNumbers numbers) { to.cutout = numbers[0]; }},
    {"erase", "erase[=P]", 0, 1,
     [](ImageAugmentation& to, AugmentNumbers numbers) { to.erase = number_or(numbers, 0, 0.25); }},
});

std::string all_augment_forms() {
  std::string forms;
  for (const AugmentName& one : kAugmentNames) forms += fmt::format("{}, ", one.form);
  return forms + "none";
}

std::string joined_numbers(std::initializer_list<double> numbers) {
  std::string text;
  for (const double number : numbers) text += fmt::format("{}{}", text.empty() ? "" : ":", number);
  return text;
}

}  // namespace

ImageAugmentation parse_augment(std::string_view text) {
  ImageAugmentation result;
  if (text == "none") return result;
  CONCORD_CHECK(!text.empty(), ArgumentError, "it is empty; there are {}", all_augment_forms());
  std::array<bool, kAugmentNames.size()> is_set{};
  const auto is_given = [&](std::string_view name) {
    for (std::size_t i = 0; i < kAugmentNames.size(); ++i) {
      if (kAugmentNames[i].name == name) return is_set[i];
    }
    return false;
  };
  for (const std::string& part : concord::split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view name = std::string_view(part).substr(0, equals);
    std::size_t place = 0;
    while (place < kAugmentNames.size() && kAugmentNames[place].name != name) ++place;
    CONCORD_CHECK(place < kAugmentNames.size(), ArgumentError, "there is no \"{}\"; there are {}", printable(name),
                  all_augment_forms());
    const AugmentName& known = kAugmentNames[place];
    CONCORD_CHECK(!is_set[place], ArgumentError, "{} is there twice", known.name);
    is_set[place] = true;

    std::vector<double> numbers;
    if (equals != std::string::npos) {
      std::string_view rest = std::string_view(part).substr(equals + 1);
      for (bool is_more = true; is_more;) {
        const std::size_t colon = rest.find(':');
        const std::optional<double> number = number_in_text<double>(rest.substr(0, colon));
        CONCORD_CHECK(number && std::isfinite(*number), ArgumentError, "\"{}\" of {} is not a number; it is {}",
                      printable(rest.substr(0, colon)), known.name, known.form);
        numbers.push_back(*number);
        is_more = colon != std::string_view::npos;
        if (is_more) rest.remove_prefix(colon + 1);
      }
    }
    CONCORD_CHECK(numbers.size() >= known.least && numbers.size() <= known.most, ArgumentError,
                  "{} has {} numbers; it is {}", known.name, numbers.size(), known.form);
    known.set(result, numbers);
  }
  CONCORD_CHECK(!is_given("affine") || (!is_given("rotate") && !is_given("shear")), ArgumentError,
                "affine has the angles of rotate and shear; take it alone");
  ImageTransform transform;
  transform.augmentation = result;
  transform.check();
  return result;
}

std::string ImageAugmentation::str() const {
  std::string text;
  const auto add = [&](std::string_view name, std::initializer_list<double> numbers) {
    text +=
        fmt::format("{}{}{}{}", text.empty() ? "" : ",", name, numbers.size() > 0 ? "=" : "", joined_numbers(numbers));
  };
  if (resized_crop) {
    if (*resized_crop == RandomResizedCrop()) {
      add("rrc", {});
    } else {
      add("rrc", {resized_crop->smallest, resized_crop->largest});
    }
  }
  if (crop > 0) add("crop", {static_cast<double>(crop)});
  const auto probability = [&](std::string_view name, double p, double usual) {
    if (p == usual) {
      add(name, {});
    } else if (p > 0) {
      add(name, {p});
    }
  };
  probability("flip", flip, 0.5);
  probability("vflip", vertical_flip, 0.5);
  if (rand_augment) {
    add("randaugment", {static_cast<double>(rand_augment->operations), static_cast<double>(rand_augment->magnitude)});
  }
  if (affine) {
    const RandomAffine& a = *affine;
    if (a == RandomAffine{.degrees = a.degrees}) {
      add("rotate", {a.degrees});
    } else {
      add("affine", {a.degrees, a.translate, a.smallest, a.largest, a.shear});
    }
  }
  if (jitter) add("jitter", {jitter->brightness, jitter->contrast, jitter->saturation, jitter->hue});
  if (cutout > 0) add("cutout", {cutout});
  probability("erase", erase, 0.25);
  return text.empty() ? "none" : text;
}

}  // namespace concord::data
