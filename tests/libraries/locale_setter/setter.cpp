// What a driver may do while it is loaded: it sets the locale of the process to that of the environment. Preloaded by a
// test of the command.
#include <clocale>
#include <locale>

namespace {

struct Setter {
  Setter() { std::locale::global(std::locale("")); }
};
const Setter setter;

}  // namespace
