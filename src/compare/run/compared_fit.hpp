// Compares a training on several devices instead of running it. Used by the command, and by every program that links
// the library.
#pragma once

namespace concord {

/// After this call, each Trainer::fit of the process looks for a CompareRequest, which `concord compare PROGRAM` leaves
/// for the programs that it starts. If there is one, the fit compares devices on the step that it would take, sends the
/// answer, and waits until the command ends this process. If that does not happen, it throws FitReplaced. The
/// comparison uses the network, loss, optimizer, clipping, groups, precision, seed, batch and data of the training. It
/// ignores the schedule, accumulation, averages, augmentation and loaded weights.
/// The library calls this function when it is loaded. A program that links the library's objects from an archive must
/// call it, because a linker leaves out an object that nothing references.
void compare_fits_on_request();

}  // namespace concord
