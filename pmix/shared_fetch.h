// Fetching a map together: the processes of a node share memory, each fills in a part of the ranks,
// and all have the whole. Set-up path.
//
// One of them, the leader, makes anonymous memory and publishes where it is; it has no
// name, so that nothing stays.
#pragma once

#include <portals4.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace lintel {

class SharedFetch {
 public:
  // Called by the leader: makes the memory for the map of that number. Returns nullptr if the
  // system has no such memory.
  [[nodiscard]] static std::unique_ptr<SharedFetch> create(uint32_t number, uint32_t ranks);
  // Called by the others, with the announcement of the leader. Returns nullptr if the memory does
  // not exist, or no longer.
  [[nodiscard]] static std::unique_ptr<SharedFetch> attach(std::span<const std::byte> announcement,
                                                           uint32_t number, uint32_t ranks);
  ~SharedFetch();
  SharedFetch(const SharedFetch&) = delete;
  SharedFetch& operator=(const SharedFetch&) = delete;

  // Returns the announcement for the others. The caller decides how it is passed.
  [[nodiscard]] std::vector<std::byte> announcement() const;

  // Fetches the part of this process, one of `parts`, by `fetch(rank, id)`, and waits until all are
  // there. What the others do not fetch in time this process fetches itself. Gives what went wrong,
  // or an empty text. Does nothing after it has succeeded.
  using Fetch = std::function<std::string(uint32_t rank, ptl_process_t& id)>;
  [[nodiscard]] std::string run(uint32_t part, uint32_t parts, const Fetch& fetch);

  // The whole map, after run().
  [[nodiscard]] const ptl_process_t* map() const noexcept;

 private:
  struct Header;
  SharedFetch() = default;
  [[nodiscard]] bool map_memory(int fd, uint32_t ranks);
  [[nodiscard]] Header& header() const noexcept;
  [[nodiscard]] ptl_process_t* entries() const noexcept;
  [[nodiscard]] std::string fetch_part(uint32_t part, uint32_t parts, const Fetch& fetch) const;

  void* memory_ = nullptr;
  size_t bytes_ = 0;
  uint32_t ranks_ = 0;
  bool complete_ = false;
  int fd_ = -1;  // the leader's
};

}  // namespace lintel
