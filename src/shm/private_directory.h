// The private directory of this user among those of all users, which anybody may create in
// /dev/shm: <root>/lintel.<uid>, or <root>/lintel.<uid>.<number> if other users have taken that
// name. All processes of the user come to the same one. Set-up and connection path.
//
// It is not in the runtime directory of the user: that goes when the user logs out, while processes
// run on, and not all processes of a job have one.
#pragma once

#include <optional>
#include <string>

#include "util/descriptor.h"

namespace lintel {

struct PrivateDirectory {
  std::string path;
  Descriptor descriptor;
};

// Opens the directory. If there is no result, errno says why: ENOENT if there is no directory.
// `make`: makes one under the first free name.
[[nodiscard]] std::optional<PrivateDirectory> open_private_directory(const std::string& root,
                                                                     bool make);

}  // namespace lintel
