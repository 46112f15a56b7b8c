// A random number that the processes of one user on one node share. It is the name of an empty file
// in the private directory of the user, which no other user can list. So it needs no room in a full
// /dev/shm. Without a job key it shows on networks which processes are of this user. Set-up path.
//
// Each process that uses it holds a lock of the file. The last one removes the file. Processes that
// are killed do not; the next one does.
#pragma once

#include <memory>
#include <string>

namespace lintel {

inline constexpr size_t node_secret_bytes = 16;

// All callers share one object while one of them keeps it. Without a usable directory it is of this
// process alone, and `reason` says why. Null: no memory, or the kernel gives no random numbers.
[[nodiscard]] std::shared_ptr<const std::string> share_node_secret(std::string& reason);

}  // namespace lintel
