// --schedule: a learning rate schedule by name, with the user's own numbers.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "concord/optim/schedule.hpp"

namespace concord::cli {

inline constexpr const char* kScheduleHelp =
    "Schedule of the learning rate over the epochs, some with parameters: cosine:end=1e-5,warmup=5. constant; "
    "cosine[:end]; linear[:end]; polynomial[:power,end]; step[:size,gamma]; multistep:at=30+60[,gamma]; "
    "exponential:gamma; restarts[:length,growth,end]; inverse-sqrt[:warmup]; plateau[:factor,patience,end]; "
    "one-cycle[:rise]. All but the last three accept warmup=EPOCHS. Rises, and one-cycle as a whole, change with each "
    "step, the others with each epoch";

/// The schedule that `text` names, for a training of `epochs` epochs. Throws ArgumentError for an unknown name, key or
/// number.
[[nodiscard]] optim::Schedule make_schedule(const std::string& text, std::int64_t epochs);

/// Refuses a text that make_schedule refuses.
[[nodiscard]] CLI::Validator schedule_text();

}  // namespace concord::cli
