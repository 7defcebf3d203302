// What the tests of faults run: small trainings, from opening the device to closing it, which use every kind of call.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace concord::test {

/// The bits of the losses and weights that come out.
using Outcome = std::map<std::string, std::vector<std::byte>>;

/// A device's whole life: opened by its id, used, closed.
using Workload = Outcome (*)(const std::string& device);

/// Opened, asked for its name and closed.
[[nodiscard]] Outcome open(const std::string& device);
/// Trained and evaluated with data that is streamed through pinned memory.
[[nodiscard]] Outcome train(const std::string& device);
/// A step whose kernels have tables of their own, run recorded and traced.
[[nodiscard]] Outcome trace(const std::string& device);
/// Such a step operator by operator, on its own values and then on given ones, and its end.
[[nodiscard]] Outcome replay(const std::string& device);
/// It beside itself, as two devices that are checked at the same time: every value, in every step.
[[nodiscard]] Outcome compare_beside(const std::string& device);
/// A product of matrices by CLBlast, with temporary memory.
[[nodiscard]] Outcome multiply(const std::string& device);
/// What a network gives in evaluation, in a whole batch and in one that is not.
[[nodiscard]] Outcome predict(const std::string& device);
/// A step of a recurrent layer, of a linear one with many rows and of a softmax.
[[nodiscard]] Outcome sequences(const std::string& device);
/// A sum on a device held to less than it has, whose kernel is built from its source, with what the compiler says.
[[nodiscard]] Outcome build_anew(const std::string& device);
/// The kernels for a product measured; nothing comes out, since measurements choose.
[[nodiscard]] Outcome tune(const std::string& device);

}  // namespace concord::test
