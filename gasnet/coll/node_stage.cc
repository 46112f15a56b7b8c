/* node_stage.cc: dividing the shared memory among teams. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll/node_stage.h"

#include <cstring>
#include <map>
#include <mutex>

#include "job/neighbourhood.h"

namespace lintel::gasnet {
namespace {

struct Taken {
  std::mutex mutex;
  std::map<size_t, size_t> bytes_by_offset;
};
Taken& taken() {
  static Taken& instance = *new Taken;
  return instance;
}

}  // namespace

bool NodeMemory::is_enough_for(uint32_t members) {
  return NodeStage::bytes(members) <= collective_bytes(members);
}

uint32_t NodeMemory::take(size_t bytes) {
  Taken& t = taken();
  const std::lock_guard lock(t.mutex);
  size_t offset = 0;
  for (const auto& [begin, length] : t.bytes_by_offset) {
    if (begin - offset >= bytes) break;
    offset = begin + length;
  }
  if (offset + bytes > collective_bytes(neighbourhood().count())) return kNone;
  t.bytes_by_offset[offset] = bytes;
  std::memset(at(neighbourhood().index(), static_cast<uint32_t>(offset)), 0, bytes);
  return static_cast<uint32_t>(offset);
}

void NodeMemory::give_back(uint32_t offset) {
  Taken& t = taken();
  const std::lock_guard lock(t.mutex);
  t.bytes_by_offset.erase(offset);
}

void* NodeMemory::at(uint32_t member, uint32_t offset) {
  return static_cast<char*>(neighbourhood().collective_memory(member)) + offset;
}

}  // namespace lintel::gasnet
