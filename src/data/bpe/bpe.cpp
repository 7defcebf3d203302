// Encoding: words that came before are copied; others are merged.
#include "concord/data/bpe.hpp"

#include <algorithm>
#include <limits>
#include <queue>

#include "concord/core/check.hpp"
#include "concord/core/platform.hpp"
#include "concord/core/utf8.hpp"
#include "concord/data/bpe/bpe_tables.hpp"
#include "concord/data/bpe/words.hpp"

namespace concord::data {
namespace {

std::uint64_t hash_of(std::string_view word) {
  std::uint64_t hash = 14695981039346656037U;
  for (const char c : word) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return hash ^ hash >> 32U;
}

/// Where the tokens of the words so far are in the result.
class KnownWords {
 public:
  struct Entry {
    std::string_view word;
    std::size_t first = 0, count = 0;
  };
  KnownWords() : entries_(1024) {}

  /// The entry of a word; with an empty word if it is new.
  Entry& at(std::string_view word) {
    if (used_ * 2 > entries_.size()) grow();
    Entry& entry = slot(word);
    if (entry.word.empty()) ++used_;
    return entry;
  }

 private:
  Entry& slot(std::string_view word) {
    const std::size_t mask = entries_.size() - 1;
    for (std::size_t i = hash_of(word) & mask;; i = (i + 1) & mask) {
      if (entries_[i].word.empty() || entries_[i].word == word) return entries_[i];
    }
  }
  void grow() {
    std::vector<Entry> before(entries_.size() * 2);
    before.swap(entries_);
    for (const Entry& entry : before) {
      if (!entry.word.empty()) slot(entry.word) = entry;
    }
  }
  std::vector<Entry> entries_;
  std::size_t used_ = 0;
};

/// Merges the tokens of one word.
class WordMerger {
 public:
  explicit WordMerger(const MergeTable& merges) : merges_(merges) {}

  void operator()(std::vector<std::int32_t>& tokens) {
    constexpr std::size_t kShort = 24;
    if (tokens.size() <= kShort) {
      merge_short(tokens);
    } else {
      merge_long(tokens);
    }
  }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  struct Candidate {
    std::int32_t rank = 0;
    std::size_t left = 0;
    std::int32_t first = 0, second = 0;  // it is out of date unless these are still there
    friend bool operator>(const Candidate& a, const Candidate& b) {
      return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
    }
  };

  void merge_short(std::vector<std::int32_t>& tokens) {
    found_.clear();
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) found_.push_back(merges_.find(tokens[i], tokens[i + 1]));
    while (!found_.empty()) {
      const auto best = std::ranges::min_element(found_, {}, &Merge::rank);
      if (best->rank == Merge::kNever) return;
      const auto i = static_cast<std::size_t>(best - found_.begin());
      tokens[i] = best->token;
      tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      found_.erase(best);
      if (i > 0) found_[i - 1] = merges_.find(tokens[i - 1], tokens[i]);
      if (i + 1 < tokens.size()) found_[i] = merges_.find(tokens[i], tokens[i + 1]);
    }
  }

  // A word may be as long as the text, such as a million blanks: a list and a queue.
  void merge_long(std::vector<std::int32_t>& tokens) {
    next_.resize(tokens.size());
    before_.resize(tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      next_[i] = i + 1 < tokens.size() ? i + 1 : kNone;
      before_[i] = i > 0 ? i - 1 : kNone;
    }
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) offer(tokens, i);
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const std::size_t left = best.left, right = next_[left];
      if (tokens[left] != best.first || right == kNone || tokens[right] != best.second) continue;
      tokens[left] = merges_.find(best.first, best.second).token;
      tokens[right] = -1;
      next_[left] = next_[right];
      if (next_[left] != kNone) {
        before_[next_[left]] = left;
        offer(tokens, left);
      }
      if (before_[left] != kNone) offer(tokens, before_[left]);
    }
    std::erase(tokens, -1);
  }

  void offer(const std::vector<std::int32_t>& tokens, std::size_t left) {
    const std::int32_t first = tokens[left], second = tokens[next_[left]];
    const Merge merge = merges_.find(first, second);
    if (merge.rank != Merge::kNever) queue_.push({merge.rank, left, first, second});
  }

  const MergeTable& merges_;
  std::vector<Merge> found_;  // of each token and the one after it
  std::vector<std::size_t> next_, before_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue_;
};

}  // namespace

struct Bpe::Tables : BpeTables {
  std::string vocab, merges_text;
};

Bpe Bpe::read(const std::filesystem::path& vocab, const std::filesystem::path& merges) {
  const std::string vocab_text = read_file(vocab), merges_text = read_file(merges);
  BpeTables tables = parse_bpe_tables(vocab_text, printable(vocab.string()), merges_text, printable(merges.string()));
  return Bpe(std::make_shared<const Tables>(Tables{std::move(tables), vocab_text, merges_text}));
}

Bpe Bpe::parse(std::string_view vocab, std::string_view merges, std::string_view subject) {
  BpeTables tables =
      parse_bpe_tables(vocab, fmt::format("{}: vocab", subject), merges, fmt::format("{}: merges", subject));
  return Bpe(std::make_shared<const Tables>(Tables{std::move(tables), std::string(vocab), std::string(merges)}));
}

const std::string& Bpe::vocab() const { return tables_->vocab; }

const std::string& Bpe::merges() const { return tables_->merges_text; }

std::int64_t Bpe::size() const { return static_cast<std::int64_t>(tables_->tokens.size()); }

std::vector<std::int32_t> Bpe::encode(std::string_view text) const {
  std::vector<std::int32_t> result, tokens;
  result.reserve(text.size() / 4 + 16);
  KnownWords known;
  WordMerger merge(tables_->merges);
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view word = text.substr(at, first_word(text.substr(at)));
    KnownWords::Entry& entry = known.at(word);
    if (entry.word.empty()) {
      tokens.clear();
      for (std::size_t i = 0; i < word.size(); ++i) {
        const std::int32_t token = tables_->of_byte[static_cast<unsigned char>(word[i])];
        CONCORD_CHECK(token >= 0, ArgumentError, "byte {}: no token stands for {:#04x}", at + i,
                      static_cast<unsigned char>(word[i]));
        tokens.push_back(token);
      }
      merge(tokens);
      entry = {word, result.size(), tokens.size()};
      result.insert(result.end(), tokens.begin(), tokens.end());
    } else {
      const std::size_t end = result.size();
      result.resize(end + entry.count);
      std::copy_n(result.begin() + static_cast<std::ptrdiff_t>(entry.first), entry.count,
                  result.begin() + static_cast<std::ptrdiff_t>(end));
    }
    at += word.size();
  }
  return result;
}

std::string Bpe::decode(std::span<const std::int32_t> tokens) const {
  std::string text;
  for (const std::int32_t token : tokens) {
    const bool is_known = token >= 0 && token < size() && tables_->is_token[static_cast<std::size_t>(token)];
    CONCORD_CHECK(is_known, ArgumentError, "the number {} is no token: there are {}", token, size());
    text += tables_->tokens[static_cast<std::size_t>(token)];
  }
  return text;
}

}  // namespace concord::data
