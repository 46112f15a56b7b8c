/* gasnet_vis.h: vector, indexed and strided puts and gets.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_VIS_H
#define GASNET_VIS_H

#include <gasnetex.h>

GASNETT_BEGIN_EXTERNC

extern gex_Event_t gex_VIS_VectorGetNB(gex_TM_t tm, size_t dstcount, gex_Memvec_t const dstlist[],
                                       gex_Rank_t srcrank, size_t srccount,
                                       gex_Memvec_t const srclist[], gex_Flags_t flags);
extern int gex_VIS_VectorGetNBI(gex_TM_t tm, size_t dstcount, gex_Memvec_t const dstlist[],
                                gex_Rank_t srcrank, size_t srccount, gex_Memvec_t const srclist[],
                                gex_Flags_t flags);
extern int gex_VIS_VectorGetBlocking(gex_TM_t tm, size_t dstcount, gex_Memvec_t const dstlist[],
                                     gex_Rank_t srcrank, size_t srccount,
                                     gex_Memvec_t const srclist[], gex_Flags_t flags);
extern gex_Event_t gex_VIS_VectorPutNB(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                                       gex_Memvec_t const dstlist[], size_t srccount,
                                       gex_Memvec_t const srclist[], gex_Flags_t flags);
extern int gex_VIS_VectorPutNBI(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                                gex_Memvec_t const dstlist[], size_t srccount,
                                gex_Memvec_t const srclist[], gex_Flags_t flags);
extern int gex_VIS_VectorPutBlocking(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                                     gex_Memvec_t const dstlist[], size_t srccount,
                                     gex_Memvec_t const srclist[], gex_Flags_t flags);
extern gex_Event_t gex_VIS_IndexedGetNB(gex_TM_t tm, size_t dstcount, void* const dstlist[],
                                        size_t dstlen, gex_Rank_t srcrank, size_t srccount,
                                        void* const srclist[], size_t srclen, gex_Flags_t flags);
extern int gex_VIS_IndexedGetNBI(gex_TM_t tm, size_t dstcount, void* const dstlist[], size_t dstlen,
                                 gex_Rank_t srcrank, size_t srccount, void* const srclist[],
                                 size_t srclen, gex_Flags_t flags);
extern int gex_VIS_IndexedGetBlocking(gex_TM_t tm, size_t dstcount, void* const dstlist[],
                                      size_t dstlen, gex_Rank_t srcrank, size_t srccount,
                                      void* const srclist[], size_t srclen, gex_Flags_t flags);
extern gex_Event_t gex_VIS_IndexedPutNB(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                                        void* const dstlist[], size_t dstlen, size_t srccount,
                                        void* const srclist[], size_t srclen, gex_Flags_t flags);
extern int gex_VIS_IndexedPutNBI(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                                 void* const dstlist[], size_t dstlen, size_t srccount,
                                 void* const srclist[], size_t srclen, gex_Flags_t flags);
extern int gex_VIS_IndexedPutBlocking(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                                      void* const dstlist[], size_t dstlen, size_t srccount,
                                      void* const srclist[], size_t srclen, gex_Flags_t flags);
extern gex_Event_t gex_VIS_StridedGetNB(gex_TM_t tm, void* dstaddr, const ptrdiff_t dststrides[],
                                        gex_Rank_t srcrank, void* srcaddr,
                                        const ptrdiff_t srcstrides[], size_t elemsz,
                                        const size_t count[], size_t stridelevels,
                                        gex_Flags_t flags);
extern int gex_VIS_StridedGetNBI(gex_TM_t tm, void* dstaddr, const ptrdiff_t dststrides[],
                                 gex_Rank_t srcrank, void* srcaddr, const ptrdiff_t srcstrides[],
                                 size_t elemsz, const size_t count[], size_t stridelevels,
                                 gex_Flags_t flags);
extern int gex_VIS_StridedGetBlocking(gex_TM_t tm, void* dstaddr, const ptrdiff_t dststrides[],
                                      gex_Rank_t srcrank, void* srcaddr,
                                      const ptrdiff_t srcstrides[], size_t elemsz,
                                      const size_t count[], size_t stridelevels, gex_Flags_t flags);
extern gex_Event_t gex_VIS_StridedPutNB(gex_TM_t tm, gex_Rank_t dstrank, void* dstaddr,
                                        const ptrdiff_t dststrides[], void* srcaddr,
                                        const ptrdiff_t srcstrides[], size_t elemsz,
                                        const size_t count[], size_t stridelevels,
                                        gex_Flags_t flags);
extern int gex_VIS_StridedPutNBI(gex_TM_t tm, gex_Rank_t dstrank, void* dstaddr,
                                 const ptrdiff_t dststrides[], void* srcaddr,
                                 const ptrdiff_t srcstrides[], size_t elemsz, const size_t count[],
                                 size_t stridelevels, gex_Flags_t flags);
extern int gex_VIS_StridedPutBlocking(gex_TM_t tm, gex_Rank_t dstrank, void* dstaddr,
                                      const ptrdiff_t dststrides[], void* srcaddr,
                                      const ptrdiff_t srcstrides[], size_t elemsz,
                                      const size_t count[], size_t stridelevels, gex_Flags_t flags);

/* The largest payload of a peer completion, in bytes. */
#define GEX_VIS_MAX_PEERCOMPLETION ((size_t)256)
extern void gex_VIS_SetPeerCompletionHandler(gex_AM_Index_t handler, const void* source_addr,
                                             size_t nbytes, gex_Flags_t flags);

/* GASNet-1 */
extern void gasnet_putv_bulk(gex_Rank_t dstnode, size_t dstcount, gasnet_memvec_t const dstlist[],
                             size_t srccount, gasnet_memvec_t const srclist[]);
extern void gasnet_getv_bulk(size_t dstcount, gasnet_memvec_t const dstlist[], gex_Rank_t srcnode,
                             size_t srccount, gasnet_memvec_t const srclist[]);
extern void gasnet_puti_bulk(gex_Rank_t dstnode, size_t dstcount, void* const dstlist[],
                             size_t dstlen, size_t srccount, void* const srclist[], size_t srclen);
extern void gasnet_geti_bulk(size_t dstcount, void* const dstlist[], size_t dstlen,
                             gex_Rank_t srcnode, size_t srccount, void* const srclist[],
                             size_t srclen);
extern void gasnet_puts_bulk(gex_Rank_t dstnode, void* dstaddr, const size_t dststrides[],
                             void* srcaddr, const size_t srcstrides[], const size_t count[],
                             size_t stridelevels);
extern void gasnet_gets_bulk(void* dstaddr, const size_t dststrides[], gex_Rank_t srcnode,
                             void* srcaddr, const size_t srcstrides[], const size_t count[],
                             size_t stridelevels);
extern gex_Event_t gasnet_putv_nb_bulk(gex_Rank_t dstnode, size_t dstcount,
                                       gasnet_memvec_t const dstlist[], size_t srccount,
                                       gasnet_memvec_t const srclist[]);
extern gex_Event_t gasnet_getv_nb_bulk(size_t dstcount, gasnet_memvec_t const dstlist[],
                                       gex_Rank_t srcnode, size_t srccount,
                                       gasnet_memvec_t const srclist[]);
extern gex_Event_t gasnet_puti_nb_bulk(gex_Rank_t dstnode, size_t dstcount, void* const dstlist[],
                                       size_t dstlen, size_t srccount, void* const srclist[],
                                       size_t srclen);
extern gex_Event_t gasnet_geti_nb_bulk(size_t dstcount, void* const dstlist[], size_t dstlen,
                                       gex_Rank_t srcnode, size_t srccount, void* const srclist[],
                                       size_t srclen);
extern gex_Event_t gasnet_puts_nb_bulk(gex_Rank_t dstnode, void* dstaddr, const size_t dststrides[],
                                       void* srcaddr, const size_t srcstrides[],
                                       const size_t count[], size_t stridelevels);
extern gex_Event_t gasnet_gets_nb_bulk(void* dstaddr, const size_t dststrides[], gex_Rank_t srcnode,
                                       void* srcaddr, const size_t srcstrides[],
                                       const size_t count[], size_t stridelevels);
extern void gasnet_putv_nbi_bulk(gex_Rank_t dstnode, size_t dstcount,
                                 gasnet_memvec_t const dstlist[], size_t srccount,
                                 gasnet_memvec_t const srclist[]);
extern void gasnet_getv_nbi_bulk(size_t dstcount, gasnet_memvec_t const dstlist[],
                                 gex_Rank_t srcnode, size_t srccount,
                                 gasnet_memvec_t const srclist[]);
extern void gasnet_puti_nbi_bulk(gex_Rank_t dstnode, size_t dstcount, void* const dstlist[],
                                 size_t dstlen, size_t srccount, void* const srclist[],
                                 size_t srclen);
extern void gasnet_geti_nbi_bulk(size_t dstcount, void* const dstlist[], size_t dstlen,
                                 gex_Rank_t srcnode, size_t srccount, void* const srclist[],
                                 size_t srclen);
extern void gasnet_puts_nbi_bulk(gex_Rank_t dstnode, void* dstaddr, const size_t dststrides[],
                                 void* srcaddr, const size_t srcstrides[], const size_t count[],
                                 size_t stridelevels);
extern void gasnet_gets_nbi_bulk(void* dstaddr, const size_t dststrides[], gex_Rank_t srcnode,
                                 void* srcaddr, const size_t srcstrides[], const size_t count[],
                                 size_t stridelevels);
GASNETT_END_EXTERNC

#endif /* GASNET_VIS_H */
