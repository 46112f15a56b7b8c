// Reading and writing values of a job. Set-up path.
#include "job_values.h"

#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <new>

namespace lintel {

bool read_identifiers(std::span<const std::byte> bytes, Identifiers& found) noexcept {
  found = {};
  if (bytes.size() == sizeof found) std::memcpy(&found, bytes.data(), sizeof found);
  return found.version == identifiers_version;
}

StoredValues::StoredValues(size_t bytes) : bytes_(bytes), memory_(nullptr, {bytes}) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_.reset(static_cast<std::byte*>(memory));
}

bool StoredValues::add(std::string_view key, std::span<const std::byte> value) noexcept {
  uint64_t used = values().size();
  const uint32_t lengths[2] = {static_cast<uint32_t>(key.size()),
                               static_cast<uint32_t>(value.size())};
  const uint64_t more = sizeof lengths + key.size() + value.size();
  if (counter_bytes + used + more > bytes_) return false;
  std::byte* const next = memory_.get() + counter_bytes + used;
  std::memcpy(next, lengths, sizeof lengths);
  std::memcpy(next + sizeof lengths, key.data(), key.size());
  if (!value.empty()) std::memcpy(next + sizeof lengths + key.size(), value.data(), value.size());
  used += more;
  // The counter changes last.
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(memory_.get(), &used, sizeof used);
  return true;
}

std::span<const std::byte> StoredValues::values() const noexcept {
  uint64_t used = 0;
  std::memcpy(&used, memory_.get(), sizeof used);
  return {memory_.get() + counter_bytes, used};
}

FoundValue find_value(std::span<const std::byte> values, std::string_view key) noexcept {
  uint32_t lengths[2];
  for (size_t at = 0; at + sizeof lengths <= values.size();) {
    std::memcpy(lengths, values.data() + at, sizeof lengths);
    const uint64_t end = uint64_t{at} + sizeof lengths + lengths[0] + lengths[1];
    if (end > values.size()) return {FoundValue::Status::nonsense};
    const auto* name = reinterpret_cast<const char*>(values.data() + at + sizeof lengths);
    if (key == std::string_view(name, lengths[0]))
      return {FoundValue::Status::found, values.subspan(end - lengths[1], lengths[1])};
    at = end;
  }
  return {};
}

std::string settle_place(JobPlace& place) {
  if (place.size == 0 || place.size >= PTL_RANK_ANY || place.rank >= place.size)
    return "the launcher says that the job has " + std::to_string(place.size) +
           " processes, but this is rank " + std::to_string(place.rank);
  if (place.local_rank >= place.local_size || place.local_size > place.size) {
    place.local_rank = 0;
    place.local_size = 1;
    place.local_leader = place.rank;
  }
  if (place.local_leader > place.rank) place.local_leader = place.rank;
  if (place.node_count == 0 || place.node_count > place.size) place.node_count = 1;
  return "";
}

}  // namespace lintel
