/* domain.cc: atomic domains. Set-up path.
 *
 * Atomics of some Portals interfaces and of the processor exclude each other
 * (PTL_COHERENT_ATOMICS). There the processor performs the operations on memory of neighbours.
 * Elsewhere all operations of a domain go through Portals.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "atomic/domain.h"

#include "client/client.h"
#include "job/thread.h"
#include "network/network.h"
#include "team/team.h"

namespace lintel::gasnet {
namespace {

constexpr gex_OP_t kBitwise =
    GEX_OP_AND | GEX_OP_OR | GEX_OP_XOR | GEX_OP_FAND | GEX_OP_FOR | GEX_OP_FXOR;
constexpr gex_OP_t kNotFetching = GEX_OP_AND | GEX_OP_OR | GEX_OP_XOR | GEX_OP_ADD | GEX_OP_SUB |
                                  GEX_OP_MULT | GEX_OP_MIN | GEX_OP_MAX | GEX_OP_INC | GEX_OP_DEC |
                                  GEX_OP_SET | GEX_OP_CAS;
constexpr gex_OP_t kAll = kNotFetching | GEX_OP_TO_FETCHING(kNotFetching) | GEX_OP_GET;

bool is_one_bit_of(uint32_t value, uint32_t mask) {
  return value != 0 && (value & (value - 1)) == 0 && (value & ~mask) == 0;
}

gex_OP_t legal_operations(gex_DT_t type) {
  return type & (GEX_DT_FLT | GEX_DT_DBL) ? kAll & ~kBitwise : kAll;
}

/** A team in which no rank is a neighbour. */
gex_TM_t team_without_neighbours() {
  static gasneti_team team;
  return &team;
}

}  // namespace
}  // namespace lintel::gasnet

using namespace lintel::gasnet;

void gex_AD_Create(gex_AD_t* ad_p, gex_TM_t tm, gex_DT_t dt, gex_OP_t ops, gex_Flags_t flags) {
  check_may_communicate("gex_AD_Create");
  if (!ad_p || !tm || GASNETI_IS_PAIR(tm)) gasnett_fatalerror_nopos("gex_AD_Create: give a team");
  if (!is_one_bit_of(dt,
                     GEX_DT_I32 | GEX_DT_U32 | GEX_DT_I64 | GEX_DT_U64 | GEX_DT_FLT | GEX_DT_DBL))
    gasnett_fatalerror_nopos("gex_AD_Create: data type 0x%x; give one of the built-in types", dt);
  if (ops == 0 || (ops & ~legal_operations(dt)) != 0)
    gasnett_fatalerror_nopos("gex_AD_Create: operations 0x%x are not legal for data type 0x%x",
                             ops & ~legal_operations(dt), dt);
  auto* domain = new gasneti_atomic_domain;
  const bool is_coherent = (network().limits().features & PTL_COHERENT_ATOMICS) != 0;
  domain->view.near_ranks = is_coherent ? tm : team_without_neighbours();
  domain->view.near_jobranks = is_coherent ? the_client()->team : team_without_neighbours();
  domain->team = tm;
  domain->type = dt;
  domain->operations = ops;
  domain->flags = flags;
  *ad_p = domain;
}

void gex_AD_Destroy(gex_AD_t ad) {
  check_may_communicate("gex_AD_Destroy");
  delete ad;
}

gex_Flags_t gex_AD_QueryFlags(gex_AD_t ad) { return ad->flags; }
gex_TM_t gex_AD_QueryTM(gex_AD_t ad) { return ad->team; }
gex_DT_t gex_AD_QueryDT(gex_AD_t ad) { return ad->type; }
gex_OP_t gex_AD_QueryOps(gex_AD_t ad) { return ad->operations; }
void gex_AD_SetCData(gex_AD_t ad, const void* val) { ad->client_data = val; }
void* gex_AD_QueryCData(gex_AD_t ad) { return const_cast<void*>(ad->client_data.load()); }

#ifdef GASNET_DEBUG
void gasneti_ad_check(gex_AD_t ad, gex_DT_t dt, gex_OP_t op, const void* address) {
  check_may_communicate("gex_AD_Op");
  if (ad->type != dt)
    gasnett_fatalerror_nopos("gex_AD_Op: data type 0x%x in a domain for 0x%x", dt, ad->type);
  if (!is_one_bit_of(op, ad->operations))
    gasnett_fatalerror_nopos("gex_AD_Op: operation 0x%x in a domain for 0x%x", op, ad->operations);
  const size_t bytes = dt & (GEX_DT_I32 | GEX_DT_U32 | GEX_DT_FLT) ? 4 : 8;
  if (reinterpret_cast<uintptr_t>(address) % bytes != 0)
    gasnett_fatalerror_nopos("gex_AD_Op: the target %p is not aligned to %zu bytes", address,
                             bytes);
}
#endif
