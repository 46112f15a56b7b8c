// Parsers of values from other processes and launchers, which check everything.
// Set-up path.
#pragma once

#include <portals4.h>
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launcher.h"

namespace lintel {

// Identifiers that a process publishes for an interface. They cross nodes.
struct Identifiers {
  uint32_t version;
  uint32_t nid;
  uint32_t pid;
  uint32_t reserved;  // zero
  uint64_t network;   // number_of_network()
};
inline constexpr uint32_t identifiers_version = 2;
static_assert(sizeof(Identifiers) == 24);

// False: another version published them.
[[nodiscard]] bool read_identifiers(std::span<const std::byte> bytes, Identifiers& found) noexcept;

// Values that a process of a job by hand stores for others, in memory that they read: the number of
// bytes in use (8 bytes), then for each value the lengths of key and value (4 bytes each), key,
// value.
class StoredValues {
 public:
  static constexpr size_t counter_bytes = 8;

  explicit StoredValues(size_t bytes);
  [[nodiscard]] std::span<std::byte> memory() noexcept { return {memory_.get(), bytes_}; }
  // False: no room. Readers see whole values.
  [[nodiscard]] bool add(std::string_view key, std::span<const std::byte> value) noexcept;
  // The bytes in use, without their number.
  [[nodiscard]] std::span<const std::byte> values() const noexcept;

 private:
  const size_t bytes_;
  struct Unmap {
    size_t bytes;
    void operator()(std::byte* memory) const noexcept { munmap(memory, bytes); }
  };
  // Zeros that no page is needed for; calloc() may have to write them.
  std::unique_ptr<std::byte, Unmap> memory_;
};

struct FoundValue {
  enum class Status : uint8_t { found, absent, nonsense };
  Status status = Status::absent;
  std::span<const std::byte> value{};  // part of what was searched
};
// Finds a value in the bytes in use of another process.
[[nodiscard]] FoundValue find_value(std::span<const std::byte> values,
                                    std::string_view key) noexcept;

// Replaces values of a launcher about the place of this process on its node that are impossible.
// Returns what is wrong with its place in the job, or an empty text.
[[nodiscard]] std::string settle_place(JobPlace& place);

}  // namespace lintel
