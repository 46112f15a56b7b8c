// Names of shared memory that this process has made. They are removed when it exits without closing
// its interfaces, also by quick_exit. Set-up path.
#pragma once

#include <string>

namespace lintel {

// A lock. While it is held no child is forked: a child that inherits a segment that is being made
// would keep its lock.
class OwnNames {
 public:
  OwnNames();
  OwnNames(const OwnNames&) = delete;
  OwnNames& operator=(const OwnNames&) = delete;
  ~OwnNames();

  // `directory`: removed with the name if it is empty then.
  void remember(const std::string& path, const std::string& directory = {});
  void forget(const std::string& path) noexcept;
  void remove(const std::string& path) noexcept;
};

}  // namespace lintel
