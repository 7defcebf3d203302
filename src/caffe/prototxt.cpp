// Parsing text messages: `name: value`, `name { … }`, `name: [a, b]`, comments from '#' on.
#include "concord/caffe/prototxt.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "concord/core/error.hpp"
#include "concord/core/text.hpp"
#include "concord/core/utf8.hpp"

namespace concord::caffe {
namespace {

constexpr int kDeepest = 32;

class TextParser {
 public:
  TextParser(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  TextMessage message(int depth, bool is_outermost) {
    if (depth > kDeepest) fail("messages within each other are too deep");
    TextMessage result;
    result.where = where_;
    while (true) {
      skip_space();
      if (at_ == text_.size()) {
        if (!is_outermost) fail("a message has no end");
        return result;
      }
      if (text_[at_] == '}' && !is_outermost) {
        ++at_;
        return result;
      }
      add_field(result, depth);
      if (is_next(',') || is_next(';')) ++at_;
    }
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw FormatError(fmt::format("{}, byte {}: {}", where_, at_, what));
  }

  void skip_space() {
    while (at_ < text_.size()) {
      if (text_[at_] == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (is_space(text_[at_])) {
        ++at_;
      } else {
        return;
      }
    }
  }
  bool is_next(char c) {
    skip_space();
    return at_ < text_.size() && text_[at_] == c;
  }

  std::string word() {
    skip_space();
    const std::size_t begin = at_;
    const auto belongs = [](char c) {
      return is_letter(c) || is_digit(c) || c == '_' || c == '.' || c == '-' || c == '+';
    };
    while (at_ < text_.size() && belongs(text_[at_])) ++at_;
    if (at_ == begin) fail("expected a name, a number or a text");
    return std::string(text_.substr(begin, at_ - begin));
  }

  std::string value() {
    skip_space();
    if (at_ == text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) return word();
    const char quote = text_[at_++];
    std::string result;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      result += text_[at_++];
    }
    if (at_ == text_.size()) fail("a text has no end");
    ++at_;
    return result;
  }

  void add_field(TextMessage& to, int depth) {
    const std::size_t begin = at_;
    const std::string name = word();
    const auto add = [&](std::string text, std::vector<TextMessage> inner) {
      to.fields.push_back({name, std::move(text), std::move(inner), begin});
    };
    const bool has_colon = is_next(':');
    if (has_colon) ++at_;
    if (is_next('{')) {
      ++at_;
      add({}, {message(depth + 1, false)});
    } else if (!has_colon) {
      fail(fmt::format("expected ':' or '{{' after {}", printable(name)));
    } else if (is_next('[')) {
      ++at_;
      while (!is_next(']')) {
        add(value(), {});
        if (is_next(',')) ++at_;
      }
      ++at_;
    } else {
      add(value(), {});
    }
  }

  const std::string_view text_;
  const std::string& where_;
  std::size_t at_ = 0;
};

}  // namespace

TextMessage TextMessage::parse(std::string_view text, const std::string& where) {
  return TextParser(text, where).message(0, true);
}

const TextMessage::Field* TextMessage::last(std::string_view name) const {
  const auto found =
      std::find_if(fields.rbegin(), fields.rend(), [&](const Field& field) { return field.name == name; });
  return found == fields.rend() ? nullptr : &*found;
}

void TextMessage::refuse(const Field& field, std::string_view expected) const {
  throw FormatError(fmt::format("{}, byte {}: {} is '{}', not {}", where, field.byte, printable(field.name),
                                printable(field.value), expected));
}

std::vector<const TextMessage*> TextMessage::messages(std::string_view name) const {
  std::vector<const TextMessage*> found;
  for (const Field& field : fields) {
    if (field.name == name && !field.message.empty()) found.push_back(field.message.data());
  }
  return found;
}

const TextMessage& TextMessage::message(std::string_view name) const {
  static const TextMessage empty;
  const Field* const found = last(name);
  return found == nullptr || found->message.empty() ? empty : found->message[0];
}

std::vector<std::string> TextMessage::texts(std::string_view name) const {
  std::vector<std::string> found;
  for (const Field& field : fields) {
    if (field.name == name && field.message.empty()) found.push_back(field.value);
  }
  return found;
}

std::string TextMessage::text(std::string_view name, const std::string& otherwise) const {
  const Field* const found = last(name);
  return found == nullptr ? otherwise : found->value;
}

std::vector<std::int64_t> TextMessage::whole_numbers(std::string_view name) const {
  std::vector<std::int64_t> numbers;
  for (const Field& field : fields) {
    if (field.name != name) continue;
    const auto number = number_in_text<std::int64_t>(field.value);
    if (!number || *number < 0 || *number > 1 << 30) refuse(field, "a number from 0 to 2^30");
    numbers.push_back(*number);
  }
  return numbers;
}

std::int64_t TextMessage::whole(std::string_view name, std::int64_t otherwise) const {
  const std::vector<std::int64_t> numbers = whole_numbers(name);
  return numbers.empty() ? otherwise : numbers.back();
}

std::int64_t TextMessage::signed_whole(std::string_view name, std::int64_t otherwise) const {
  const Field* const found = last(name);
  if (found == nullptr) return otherwise;
  const auto number = number_in_text<std::int64_t>(found->value);
  if (!number || *number < -(1 << 30) || *number > 1 << 30) refuse(*found, "a number from -2^30 to 2^30");
  return *number;
}

float TextMessage::real(std::string_view name, float otherwise) const {
  const Field* const found = last(name);
  if (found == nullptr) return otherwise;
  const auto number = number_in_text<float>(found->value);
  if (!number) refuse(*found, "a number");
  return *number;
}

bool TextMessage::is_on(std::string_view name, bool otherwise) const {
  const Field* const found = last(name);
  if (found == nullptr) return otherwise;
  if (found->value != "true" && found->value != "false") refuse(*found, "true or false");
  return found->value == "true";
}

}  // namespace concord::caffe
