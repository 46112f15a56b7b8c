/* node_memory.cc: the parts that are taken. Set-up path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll/node_memory.h"

#include <cstring>
#include <map>

#include "coll/node_stage.h"
#include "job/mutex.h"
#include "job/neighbourhood.h"

namespace lintel::gasnet {
namespace {

struct Taken {
  Mutex mutex;
  std::map<size_t, size_t> bytes_by_offset LINTEL_GASNET_GUARDED_BY(mutex);
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
  const LockGuard lock(t.mutex);
  size_t offset = 0;
  for (const auto& [begin, length] : t.bytes_by_offset) {
    if (begin - offset >= bytes) break;
    offset = begin + length;
  }
  if (offset + bytes > collective_bytes(neighbourhood().count())) return kNone;
  gasneti_assert(t.bytes_by_offset.count(offset) == 0);
  t.bytes_by_offset[offset] = bytes;
  std::memset(at(neighbourhood().index(), static_cast<uint32_t>(offset)), 0, bytes);
  return static_cast<uint32_t>(offset);
}

void NodeMemory::give_back(uint32_t offset) {
  Taken& t = taken();
  const LockGuard lock(t.mutex);
  gasneti_assert(t.bytes_by_offset.count(offset) == 1);
  t.bytes_by_offset.erase(offset);
}

void* NodeMemory::at(uint32_t member, uint32_t offset) {
  return static_cast<char*>(neighbourhood().collective_memory(member)) + offset;
}

}  // namespace lintel::gasnet
