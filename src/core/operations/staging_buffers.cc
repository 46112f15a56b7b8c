#include "core/operations/staging_buffers.h"

#include <sys/mman.h>

#include <atomic>

#include "util/assert.h"
#include "util/log.h"

namespace lintel {

namespace {
constexpr size_t group_bytes = StagingBuffers::buffer_bytes * StagingBuffers::group_buffers;
}  // namespace

StagingBuffers::~StagingBuffers() {
  LINTEL_ASSERT(in_use_ == 0);
  for (unsigned i = 0; i < group_count_; ++i) {
    if (groups_[i].pinned_by != nullptr) groups_[i].pinned_by->unpin(groups_[i].memory);
    munmap(groups_[i].memory, group_bytes);
  }
}

bool StagingBuffers::make_group(MemoryKind* kind) noexcept {
  static std::atomic<bool> said{false};
  if (group_count_ == most_groups) return false;
  void* const memory =
      mmap(nullptr, group_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    log_once(
        said, LogLevel::warn,
        "no memory for buffers of messages with device memory: mmap of %zu bytes failed; such "
        "messages wait, or end as PTL_NI_UNDELIVERABLE. Raise ulimit -v or the limit of the job",
        group_bytes);
    return false;
  }
  const bool pinned = kind != nullptr && kind->pin(memory, group_bytes);
  Group& group = groups_[group_count_++];
  group = {static_cast<std::byte*>(memory), pinned ? kind : nullptr};
  for (unsigned i = group_buffers; i != 0; --i)
    free_[free_count_++] = group.memory + (i - 1) * buffer_bytes;
  return true;
}

std::byte* StagingBuffers::take(unsigned holds, MemoryKind* kind) noexcept {
  if (holds != 0 && in_use_ >= capacity / 2) return nullptr;
  if (free_count_ == 0 && !make_group(kind)) return nullptr;
  ++in_use_;
  return free_[--free_count_];
}

void StagingBuffers::give_back(std::byte* buffer) noexcept {
  LINTEL_ASSERT(buffer != nullptr && in_use_ != 0 && free_count_ < capacity);
  --in_use_;
  ++given_back_;
  free_[free_count_++] = buffer;
}

}  // namespace lintel
