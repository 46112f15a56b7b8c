/* domain.h: the object behind a gex_AD_t. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_ATOMIC_DOMAIN_H
#define LINTEL_GASNET_ATOMIC_DOMAIN_H

#include <gasnet_ratomic.h>

#include <atomic>

/** `view` comes first: inline functions of the public headers read it. */
struct gasneti_atomic_domain {
  gasneti_ad_view view{};
  gex_TM_t team = GEX_TM_INVALID;
  gex_DT_t type = 0;
  gex_OP_t operations = 0;
  gex_Flags_t flags = 0;
  std::atomic<const void*> client_data{nullptr};
};
static_assert(offsetof(gasneti_atomic_domain, view) == 0);

#endif  // LINTEL_GASNET_ATOMIC_DOMAIN_H
