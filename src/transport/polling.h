// The role of the thread that polls: it holds the poll token of its interface. A function that
// requires the role runs on that thread. The compiler checks it for the process as a whole: that
// the token is that of the right interface, it does not see.
#pragma once

#include "util/thread_annotations.h"

namespace lintel {

class LINTEL_CAPABILITY("poll token") PollRole {
 public:
  // For callers that have the role where the compiler cannot see that.
  void assert_held() const noexcept LINTEL_ASSERT_CAPABILITY(this) {}
};
inline constexpr PollRole polling;

}  // namespace lintel
