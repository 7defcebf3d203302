// Ranks tell each other how it went before any of them goes on.
#include "concord/train/on_all_ranks.hpp"

#include <algorithm>
#include <exception>
#include <vector>

#include "concord/collective/gathered.hpp"
#include "concord/core/check.hpp"

namespace concord::train {

void on_all_ranks(collective::Group& group, std::string_view what, const std::function<void()>& make) {
  enum class Outcome : std::uint8_t { good, no_memory, failed };
  const int rank = group.rank(), ranks = group.size();
  Outcome own = Outcome::good;
  std::exception_ptr error;
  try {
    make();
  } catch (const RankLost&) {
    throw;
  } catch (const OutOfMemory& failure) {
    own = Outcome::no_memory;
    error = std::make_exception_ptr(OutOfMemory(fmt::format("{} {} of {}: {}", what, rank, ranks, failure.what())));
  } catch (const Error&) {
    own = Outcome::failed;
    error = std::current_exception();
  }
  const std::vector<Outcome> all = collective::gathered(group, own);
  if (error) std::rethrow_exception(error);
  const auto other = std::ranges::find_if(all, [](Outcome outcome) { return outcome != Outcome::good; });
  if (other == all.end()) return;
  const auto where = other - all.begin();
  CONCORD_CHECK(*other != Outcome::no_memory, OutOfMemory,
                "{0} {1} does not fit on the device of rank {1}, which says why", what, where);
  throw ArgumentError(fmt::format("{0} {1} cannot run on the device of rank {1}, which says why", what, where));
}

}  // namespace concord::train
