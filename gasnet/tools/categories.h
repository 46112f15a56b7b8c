/* categories.h: what a category of trace and statistics files counts.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_TOOLS_CATEGORIES_H
#define LINTEL_GASNET_TOOLS_CATEGORIES_H

namespace lintel::gasnet {

constexpr const char* name_of_category(char category) {
  switch (category) {
    case 'P':
      return "puts";
    case 'G':
      return "gets";
    case 'A':
      return "active messages handled";
    case 'B':
      return "barriers";
    case 'X':
      return "collectives";
    case 'O':
      return "atomics";
    default:
      return "lines";
  }
}

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_TOOLS_CATEGORIES_H
