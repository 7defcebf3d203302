// The opcodes of protocols 0 to 5 that PyTorch writes. https://docs.python.org/3/library/pickletools.html describes
// them.
#include "concord/weights/pickle.hpp"

#include <fmt/format.h>

#include <bit>
#include <limits>
#include <unordered_map>
#include <utility>

#include "concord/core/error.hpp"
#include "concord/core/text.hpp"
#include "concord/weights/torch_globals.hpp"

namespace concord::weights {
namespace {

constexpr std::size_t kMostValues = 1'000'000;  // far beyond real files: a byte may make a value of many
constexpr std::size_t kMostWords = 200;         // of a name in a message

}  // namespace

class Pickle::Machine {
 public:
  Machine(Pickle& pickle, std::string_view bytes, std::string where, std::size_t offset)
      : pickle_(pickle), bytes_(bytes), where_(std::move(where)), offset_(offset) {}

  void run() {
    try {
      while (pickle_.value_ == nullptr) {
        begin_ = pickle_.at_;
        step(take(1)[0]);
      }
    } catch (const PickleProblem& problem) {
      throw FormatError(fmt::format("{}, byte {}: {}", where_, offset_ + begin_, problem.what));
    }
  }

 private:
  using Kind = Pickled::Kind;

  std::string_view take(std::uint64_t count) {
    check_pickle(count <= bytes_.size() - pickle_.at_, "the pickle ends too early");
    const std::string_view taken = bytes_.substr(pickle_.at_, count);
    pickle_.at_ += count;
    return taken;
  }
  std::uint64_t number(std::size_t count) {
    const std::string_view taken = take(count);
    std::uint64_t value = 0;
    for (std::size_t i = count; i-- > 0;) value = value << 8 | static_cast<unsigned char>(taken[i]);
    return value;
  }
  std::string_view line() {
    const std::size_t end = bytes_.find('\n', pickle_.at_);
    check_pickle(end != std::string_view::npos, "the pickle ends too early");
    const std::string_view taken = take(end - pickle_.at_);
    take(1);
    return taken;
  }

  Pickled* make(Kind kind) {
    check_pickle(pickle_.values_.size() < kMostValues, fmt::format("more than {} values", kMostValues));
    pickle_.values_.push_back({.kind = kind});
    return &pickle_.values_.back();
  }
  void push(Pickled* value) { stack_.push_back(value); }
  void push_whole(std::int64_t whole) {
    Pickled* const value = make(Kind::whole);
    value->whole = whole;
    push(value);
  }
  void push_text(std::string_view text) {
    Pickled* const value = make(Kind::text);
    value->text = text;
    push(value);
  }
  void push_items(Kind kind, std::vector<Pickled*> items) {
    Pickled* const value = make(kind);
    value->items = std::move(items);
    push(value);
  }

  // Values above the last mark are on the stack of their own.
  [[nodiscard]] std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Pickled* pop() {
    check_pickle(stack_.size() > floor(), "the stack is empty");
    Pickled* const value = stack_.back();
    stack_.pop_back();
    return value;
  }
  [[nodiscard]] Pickled* top() const {
    check_pickle(stack_.size() > floor(), "the stack is empty");
    return stack_.back();
  }
  std::vector<Pickled*> pop_last(std::size_t count) {
    check_pickle(stack_.size() - floor() >= count, "the stack is empty");
    std::vector<Pickled*> items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return items;
  }
  std::vector<Pickled*> pop_to_mark() {
    check_pickle(!marks_.empty(), "there is no mark");
    std::vector<Pickled*> items = pop_last(stack_.size() - marks_.back());
    marks_.pop_back();
    return items;
  }
  void append(Kind kind, const std::vector<Pickled*>& items) {
    Pickled* const to = top();
    check_pickle(to->kind == kind,
                 kind == Kind::list ? "appends to a value that is no list" : "sets items of no dictionary");
    check_pickle(kind == Kind::list || items.size() % 2 == 0, "a key without a value");
    check_pickle(to->items.size() + items.size() <= 2 * kMostValues, "a list is too long");
    to->items.insert(to->items.end(), items.begin(), items.end());
  }
  void push_dict(std::vector<Pickled*> items) {
    check_pickle(items.size() % 2 == 0, "a key without a value");
    push_items(Kind::dict, std::move(items));
  }

  void put(std::uint64_t index) { memo_[index] = top(); }
  void get(std::uint64_t index) {
    const auto found = memo_.find(index);
    check_pickle(found != memo_.end(), fmt::format("there is no value {} in the memo", index));
    push(found->second);
  }

  void push_long(std::uint64_t count) {
    const std::string_view taken = take(count);
    Pickled* const value = make(count > 8 ? Kind::real : Kind::whole);
    value->text = taken;  // the first pickle of a file is such a number
    if (count > 8) {
      value->real = std::numeric_limits<double>::quiet_NaN();
    } else if (count > 0) {
      std::uint64_t bits = (static_cast<unsigned char>(taken.back()) & 0x80U) != 0 ? ~std::uint64_t{0} : 0;
      for (std::size_t i = count; i-- > 0;) bits = bits << 8 | static_cast<unsigned char>(taken[i]);
      value->whole = static_cast<std::int64_t>(bits);
    }
    push(value);
  }
  void push_real(double real) {
    Pickled* const value = make(Kind::real);
    value->real = real;
    push(value);
  }
  void push_big_endian_real() {
    const std::string_view taken = take(8);
    std::uint64_t bits = 0;
    for (const char c : taken) bits = bits << 8 | static_cast<unsigned char>(c);
    push_real(std::bit_cast<double>(bits));
  }
  void push_decimal() {
    std::string_view text = line();
    if (text == "00" || text == "01") return push_whole(text == "01" ? 1 : 0);  // bool of protocol 0
    if (text.ends_with('L')) text.remove_suffix(1);
    const auto whole = number_in_text<std::int64_t>(text);
    check_pickle(whole.has_value(), "not a whole number of 64 bits");
    push_whole(*whole);
  }

  void push_global(std::string_view module, std::string_view name) {
    pickle_.names_.push_back(fmt::format("{} {}", module, name));
    const std::string& global = pickle_.names_.back();
    if (!is_allowed_global(global)) {
      throw PickleProblem{
          fmt::format("it calls for Python's '{}.{}', which is not read: only tensors, numbers, texts, lists and "
                      "dictionaries are, and nothing is executed. In Python: torch.save(model.state_dict(), FILE)",
                      module.substr(0, kMostWords), name.substr(0, kMostWords))};
    }
    Pickled* const value = make(Kind::global);
    value->text = global;
    push(value);
  }

  void reduce() {
    const Pickled* const arguments = pop();
    const Pickled* const global = pop();
    check_pickle(arguments->kind == Kind::tuple, "arguments that are no tuple");
    check_pickle(global->kind == Kind::global, "calls a value that is no function");
    const std::vector<Pickled*>& items = arguments->items;
    if (global->text == "collections OrderedDict") return push_ordered(items);
    if (global->text == "torch Size") {
      check_pickle(items.size() == 1 && (items[0]->kind == Kind::tuple || items[0]->kind == Kind::list),
                   "a torch.Size of no list");
      return push(items[0]);
    }
    if (global->text == "torch device") {
      check_pickle(!items.empty() && items[0]->kind == Kind::text, "a torch.device without a name");
      return push(items[0]);
    }
    if (global->text == "torch._utils _rebuild_parameter") {
      check_pickle(!items.empty() && items[0]->kind == Kind::tensor, "a parameter without a tensor");
      return push(items[0]);
    }
    check_pickle(is_tensor_global(global->text), fmt::format("calls {}", global->text));
    push_tensor(items, global->text.ends_with("_v3"));
  }

  // OrderedDict() or OrderedDict([(key, value), …])
  void push_ordered(const std::vector<Pickled*>& arguments) {
    std::vector<Pickled*> items;
    if (!arguments.empty()) {
      check_pickle(arguments[0]->kind == Kind::list, "an OrderedDict of no list");
      copied_ += arguments[0]->items.size();
      check_pickle(copied_ <= kMostValues, fmt::format("more than {} values", kMostValues));
      for (const Pickled* pair : arguments[0]->items) {
        const bool is_pair = (pair->kind == Kind::tuple || pair->kind == Kind::list) && pair->items.size() == 2;
        check_pickle(is_pair, "an OrderedDict of a value that is no pair");
        items.insert(items.end(), pair->items.begin(), pair->items.end());
      }
    }
    push_dict(std::move(items));
  }

  void push_tensor(const std::vector<Pickled*>& arguments, bool has_type) {
    pickle_.tensors_.push_back(tensor_of(arguments, has_type, pickle_.storages_));
    pickle_.tensors_.back().byte = offset_ + begin_;
    Pickled* const value = make(Kind::tensor);
    value->whole = static_cast<std::int64_t>(pickle_.tensors_.size() - 1);
    push(value);
  }
  void push_storage() {
    pickle_.storages_.push_back(storage_of(*pop()));
    Pickled* const value = make(Kind::storage);
    value->whole = static_cast<std::int64_t>(pickle_.storages_.size() - 1);
    push(value);
  }

  // Attributes; those of a dictionary have no weights.
  void build() {
    pop();
    check_pickle(top()->kind == Kind::dict, "sets attributes of a value that has none");
  }

  void push_stack_global() {
    const Pickled* const name = pop();
    const Pickled* const module = pop();
    check_pickle(name->kind == Kind::text && module->kind == Kind::text, "a class whose name is no text");
    push_global(module->text, name->text);
  }

  void finish() {
    Pickled* const value = pop();
    check_pickle(stack_.empty() && marks_.empty(), "values are left on the stack");
    pickle_.value_ = value;
  }

  void step(char opcode) {
    switch (opcode) {
      case '\x80': check_pickle(number(1) <= 5, "a protocol above 5"); break;
      case '\x95': take(8); break;  // FRAME
      case '.': finish(); break;
      case '(': marks_.push_back(stack_.size()); break;
      case '0': pop(); break;
      case '1': pop_to_mark(); break;
      case '2': push(top()); break;
      case 'N': push(make(Kind::none)); break;
      case '\x88': push_whole(1); break;
      case '\x89': push_whole(0); break;
      case 'I':
      case 'L': push_decimal(); break;
      case 'J': push_whole(static_cast<std::int32_t>(static_cast<std::uint32_t>(number(4)))); break;
      case 'K': push_whole(static_cast<std::int64_t>(number(1))); break;
      case 'M': push_whole(static_cast<std::int64_t>(number(2))); break;
      case '\x8a': push_long(number(1)); break;
      case '\x8b': push_long(number(4)); break;
      case 'G': push_big_endian_real(); break;
      case 'U':
      case 'C':
      case '\x8c': push_text(take(number(1))); break;
      case 'T':
      case 'B':
      case 'X': push_text(take(number(4))); break;
      case '\x8d':
      case '\x8e': push_text(take(number(8))); break;
      case ')': push_items(Kind::tuple, {}); break;
      case '\x85': push_items(Kind::tuple, pop_last(1)); break;
      case '\x86': push_items(Kind::tuple, pop_last(2)); break;
      case '\x87': push_items(Kind::tuple, pop_last(3)); break;
      case 't': push_items(Kind::tuple, pop_to_mark()); break;
      case ']': push_items(Kind::list, {}); break;
      case 'l': push_items(Kind::list, pop_to_mark()); break;
      case 'a': append(Kind::list, pop_last(1)); break;
      case 'e': append(Kind::list, pop_to_mark()); break;
      case '}': push_items(Kind::dict, {}); break;
      case 'd': push_dict(pop_to_mark()); break;
      case 's': append(Kind::dict, pop_last(2)); break;
      case 'u': append(Kind::dict, pop_to_mark()); break;
      case 'c': {
        const std::string_view module = line();
        push_global(module, line());
        break;
      }
      case '\x93': push_stack_global(); break;
      case 'R': reduce(); break;
      case 'Q': push_storage(); break;
      case 'b': build(); break;
      case 'q': put(number(1)); break;
      case 'r': put(number(4)); break;
      case '\x94': put(memo_.size()); break;
      case 'h': get(number(1)); break;
      case 'j': get(number(4)); break;
      default: throw PickleProblem{fmt::format("opcode {:#04x} is not read", static_cast<unsigned char>(opcode))};
    }
  }

  Pickle& pickle_;
  const std::string_view bytes_;
  const std::string where_;
  const std::size_t offset_;
  std::size_t begin_ = 0;  // of the opcode
  std::vector<Pickled*> stack_;
  std::vector<std::size_t> marks_;
  std::unordered_map<std::uint64_t, Pickled*> memo_;
  std::size_t copied_ = 0;  // values of lists; a few bytes may ask for a long one
};

Pickle::Pickle(std::string_view bytes, std::string where, std::size_t offset) {
  Machine(*this, bytes, std::move(where), offset).run();
}

}  // namespace concord::weights
