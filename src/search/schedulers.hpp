// The schedulers by name, for make_scheduler. Internal to the library.
#pragma once

#include <memory>

#include "concord/search/scheduler.hpp"

namespace concord::search {

[[nodiscard]] std::unique_ptr<Scheduler> make_asha(const Space& space, const SchedulerOptions& options);
[[nodiscard]] std::unique_ptr<Scheduler> make_tpe(const Space& space, const SchedulerOptions& options);

}  // namespace concord::search
