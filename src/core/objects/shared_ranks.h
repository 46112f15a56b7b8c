// The entries of a large rank map, once per node: processes of one user that set the same map share
// the pages (spec 3.6.6). Set-up path.
//
// The entries lie in sealed anonymous memory (memfd_create), which nobody can change any more and
// which is gone with the last process that uses it, however that ends. Others find it through a
// symbolic link in /dev/shm, lintel-map.<uid>.<hash>, to the descriptor in /proc of the process
// that made it; a process that follows it compares every entry. A link whose process was killed
// leads nowhere; the next interface that the user opens removes it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "portals4.h"
#include "transport/message.h"
#include "util/descriptor.h"

namespace lintel {

// Smaller maps are not worth a descriptor: each process keeps its own.
inline constexpr uint64_t fewest_shared_ranks = 1024;

class SharedRanks {
 public:
  // Entries equal to `mapping`, found or made; nullptr if this node does not permit it.
  [[nodiscard]] static std::unique_ptr<SharedRanks> obtain(const ptl_process_t* mapping,
                                                           uint64_t count);
  ~SharedRanks();
  SharedRanks(const SharedRanks&) = delete;
  SharedRanks& operator=(const SharedRanks&) = delete;

  [[nodiscard]] const ProcessId* entries() const noexcept;

  // Removes links of this user that processes left behind.
  static void remove_leftovers() noexcept;

 private:
  SharedRanks() = default;
  [[nodiscard]] bool create(const std::string& link, const ptl_process_t* mapping, uint64_t count,
                            uint64_t hash, bool replace);
  [[nodiscard]] bool attach(const std::string& link, const ptl_process_t* mapping, uint64_t count,
                            uint64_t hash);
  [[nodiscard]] bool map_file(int fd, uint64_t count);

  void* memory_ = nullptr;
  size_t mapped_bytes_ = 0;
  Descriptor published_;  // open if this object made the memory
  std::string link_;
};

}  // namespace lintel
