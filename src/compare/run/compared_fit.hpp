// Trainings that are compared on several devices instead of run. Used by the command, and by every program that links
// the library.
#pragma once

namespace concord {

/// From now on a Trainer::fit of this process looks for a CompareRequest, which `concord compare PROGRAM` leaves for
/// the programs that it starts. Where there is one, the fit compares devices on the step that it would take, answers,
/// waits for the command to end this process, and throws FitReplaced if that does not happen. Network, loss, optimizer,
/// clipping, groups, precision, seed, batch and data are the training's. Its schedule, accumulation, averages,
/// augmentation and loaded weights are left out.
/// The library calls it when it is loaded. A program that links the library's objects from an archive calls it itself,
/// because a linker leaves out an object that nobody names.
void compare_fits_on_request();

}  // namespace concord
