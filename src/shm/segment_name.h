// Names of segments in /dev/shm: lintel.<uid>.<job>.<nid>.<pid>. Set-up and connection path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "transport/message.h"

namespace lintel {

// Processes of different jobs do not see each other. An empty key gives 0.
[[nodiscard]] uint32_t job_hash_of(std::string_view job_key) noexcept;

// The path of the segment of `process` in the job `job_hash` of the calling user.
[[nodiscard]] std::string segment_path(uint32_t job_hash, ProcessId process);

// The directory of all segments, and what the names of all those of the calling user begin with.
[[nodiscard]] const std::string& segment_directory() noexcept;
[[nodiscard]] std::string segment_name_prefix();

// For tests, which make and leave segments that others must not tidy up. Before the first segment.
void set_segment_directory(std::string directory);

}  // namespace lintel
