// The names of this process's segments. They are removed when it exits without closing its
// interfaces. Set-up path.
#pragma once

#include <string>

namespace lintel {

// A lock. While it is held no child is forked: a child that inherits a segment that is being made
// would keep its lock.
class OwnSegments {
 public:
  OwnSegments();
  OwnSegments(const OwnSegments&) = delete;
  OwnSegments& operator=(const OwnSegments&) = delete;
  ~OwnSegments();

  void remember(const std::string& path);
  // Removes the name, and the directory if it is empty.
  void remove(const std::string& path) noexcept;
};

}  // namespace lintel
