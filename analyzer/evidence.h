// Whether the trace shows all that a finding hangs on.
#pragma once

#include "analyzer/subject.h"

namespace capturesan {

// False if records are missing between the first fact that the finding is made of and the moment of judging, or if the
// call is of a kind that this version does not know. Such a finding is at most suspected.
bool evidence_is_whole(const subject& s);

} // namespace capturesan
