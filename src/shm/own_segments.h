// The names of the segments that this process owns, which are removed when it exits without finishing its
// interfaces. Set-up path.
#pragma once

#include <string>

namespace lintel {

// Exclusive as long as it lives, and no child is forked meanwhile: a child that inherits a segment that is
// being made would keep its lock.
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
