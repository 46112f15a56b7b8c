// Which segments this process owns. Set-up and connection path; thread-safe.
//
// A segment's owner proves that it lives by a POSIX record lock, which the kernel drops as soon as
// the owner closes any descriptor of that file. Whoever opens a segment therefore asks here first:
// one of this process' own (another interface, say) is used through the descriptor that is open
// already. A forked child owns nothing of this.
#pragma once

#include <sys/types.h>

#include <mutex>
#include <optional>
#include <string>

namespace lintel {

// Held while a name is looked for and taken, so that no thread mistakes the segment that another
// one of this process is just creating for a leftover.
[[nodiscard]] std::unique_lock<std::mutex> lock_segment_creation();

// Called before the segment gets its name. The names of all owned segments are removed when the
// process exits without finishing its interfaces.
void remember_own_segment(const std::string& path, int fd);
void forget_own_segment(const std::string& path) noexcept;

// The descriptor of the segment at `path` if this very process owns it. It must not be closed.
[[nodiscard]] std::optional<int> own_segment_fd(const std::string& path);

}  // namespace lintel
