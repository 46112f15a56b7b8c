/* gasneti_conduit_tools.h: tools that need a conduit. Private: include gasnet_tools.h after
 * gasnetex.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNETI_CONDUIT_TOOLS_H
#define GASNETI_CONDUIT_TOOLS_H

GASNETT_BEGIN_EXTERNC

/** Fresh memory of the process, aligned to pages. */
extern void* gasnett_mmap(uintptr_t bytes);

/** Returns the handlers that the self-test needs. To be called before gex_Client_Init. */
extern void gasnett_diagnostic_gethandlers(gex_AM_Entry_t** table, int* count);

/* Names of a set of bits. With NULL, returns the size of the buffer that is needed, including the
 * zero byte. */
extern size_t gasnett_format_dt(char* buf, gex_DT_t mask);
extern size_t gasnett_format_op(char* buf, gex_OP_t mask);
extern size_t gasnett_format_ti(char* buf, gex_TI_t mask);

typedef struct {
  size_t minsz;
  size_t maxsz;
  uintptr_t total;
  void* minaddr;
  void* maxaddr;
} gasnett_memveclist_stats_t;
typedef struct {
  void* minaddr;
  void* maxaddr;
} gasnett_addrlist_stats_t;
extern size_t gasnett_format_memveclist_bufsz(size_t count);
extern gasnett_memveclist_stats_t gasnett_format_memveclist(char* buf, size_t count,
                                                            gex_Memvec_t const* list);
extern size_t gasnett_format_addrlist_bufsz(size_t count);
extern gasnett_addrlist_stats_t gasnett_format_addrlist(char* buf, size_t count, void* const* list,
                                                        size_t len);
extern size_t gasnett_format_putsgets_bufsz(size_t levels);
extern size_t gasnett_format_putsgets(char* buf, void* stats, gex_TM_t tm, gex_Rank_t rank,
                                      void* dst, const ptrdiff_t dststrides[], void* src,
                                      const ptrdiff_t srcstrides[], size_t elemsz,
                                      const size_t count[], size_t levels);

GASNETT_END_EXTERNC

#endif /* GASNETI_CONDUIT_TOOLS_H */
