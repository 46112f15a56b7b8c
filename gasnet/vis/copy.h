/* copy.h: copying the pieces of a run. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_VIS_COPY_H
#define LINTEL_GASNET_VIS_COPY_H

#include <cstring>

#include "vis/rows.h"

namespace lintel::gasnet {

/** @param copy  copies one piece: void(char* to, const char* from). */
template <typename Copy>
inline void copy_each(const Run& to, const Run& from, Copy&& copy) {
  char* target = to.address;
  const char* source = from.address;
  for (size_t i = 0;;) {
    copy(target, source);
    if (++i == to.count) return;
    target += to.stride;
    source += from.stride;
  }
}

/** Copies all pieces; a load and a store for each of 4 or 8 bytes. */
inline void copy_run(const Run& to, const Run& from) {
  switch (to.bytes) {
    case 4:
      return copy_each(to, from, [](char* t, const char* s) { std::memcpy(t, s, 4); });
    case 8:
      return copy_each(to, from, [](char* t, const char* s) { std::memcpy(t, s, 8); });
    case 16:
      return copy_each(to, from, [](char* t, const char* s) { std::memcpy(t, s, 16); });
    default:
      return copy_each(to, from,
                       [bytes = to.bytes](char* t, const char* s) { std::memcpy(t, s, bytes); });
  }
}

/** The pieces of `run` one behind the other. */
inline Run packed_like(const Run& run, char* data) {
  return {data, static_cast<ptrdiff_t>(run.bytes), run.bytes, run.count};
}

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_VIS_COPY_H
