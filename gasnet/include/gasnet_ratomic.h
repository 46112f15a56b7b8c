/* gasnet_ratomic.h: remote atomics.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_RATOMIC_H
#define GASNET_RATOMIC_H

#include <gasnetex.h>

struct gasneti_atomic_domain;
typedef struct gasneti_atomic_domain* gex_AD_t;
#define GEX_AD_INVALID ((gex_AD_t)0)

GASNETT_BEGIN_EXTERNC
extern void gex_AD_Create(gex_AD_t* ad_p, gex_TM_t tm, gex_DT_t dt, gex_OP_t ops,
                          gex_Flags_t flags);
extern void gex_AD_Destroy(gex_AD_t ad);
extern gex_Flags_t gex_AD_QueryFlags(gex_AD_t ad);
extern gex_TM_t gex_AD_QueryTM(gex_AD_t ad);
extern gex_DT_t gex_AD_QueryDT(gex_AD_t ad);
extern gex_OP_t gex_AD_QueryOps(gex_AD_t ad);
extern void gex_AD_SetCData(gex_AD_t ad, const void* val);
extern void* gex_AD_QueryCData(gex_AD_t ad);
GASNETT_END_EXTERNC

/* gex_AD_OpNB_[T] and gex_AD_OpNBI_[T] for I32, U32, I64, U64, FLT and DBL. GEX_FLAG_IMMEDIATE,
 * GEX_FLAG_AD_MY_RANK and GEX_FLAG_AD_MY_NBRHD have no effect. */
#include <gasneti_ad.h>

#endif /* GASNET_RATOMIC_H */
