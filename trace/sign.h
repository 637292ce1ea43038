// A process of another user than the owner of the trace folder cannot leave its sign there (format.h). It leaves an
// empty folder `capturesan-untraced-<session>-<pid>-<name>` here, and `capturesan run` takes it away.
#pragma once

namespace capturesan::trace {

inline constexpr char sign_folder[] = "/dev/shm";
inline constexpr char sign_prefix[] = "capturesan-untraced-";

} // namespace capturesan::trace
