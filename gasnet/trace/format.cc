/* format.cc: types, operations and lists as text, and fresh memory: tools that need a conduit.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>

#include "tools/headers.h"

namespace {

struct BitName {
  uint32_t bit;
  const char* name;
};
constexpr BitName kDataTypes[] = {{GEX_DT_I32, "I32"},  {GEX_DT_U32, "U32"}, {GEX_DT_I64, "I64"},
                                  {GEX_DT_U64, "U64"},  {GEX_DT_FLT, "FLT"}, {GEX_DT_DBL, "DBL"},
                                  {GEX_DT_USER, "USER"}};
constexpr BitName kOperations[] = {
    {GEX_OP_AND, "AND"},   {GEX_OP_OR, "OR"},     {GEX_OP_XOR, "XOR"},
    {GEX_OP_ADD, "ADD"},   {GEX_OP_SUB, "SUB"},   {GEX_OP_MULT, "MULT"},
    {GEX_OP_MIN, "MIN"},   {GEX_OP_MAX, "MAX"},   {GEX_OP_INC, "INC"},
    {GEX_OP_DEC, "DEC"},   {GEX_OP_SET, "SET"},   {GEX_OP_CAS, "CAS"},
    {GEX_OP_FAND, "FAND"}, {GEX_OP_FOR, "FOR"},   {GEX_OP_FXOR, "FXOR"},
    {GEX_OP_FADD, "FADD"}, {GEX_OP_FSUB, "FSUB"}, {GEX_OP_FMULT, "FMULT"},
    {GEX_OP_FMIN, "FMIN"}, {GEX_OP_FMAX, "FMAX"}, {GEX_OP_FINC, "FINC"},
    {GEX_OP_FDEC, "FDEC"}, {GEX_OP_SWAP, "SWAP"}, {GEX_OP_FCAS, "FCAS"},
    {GEX_OP_GET, "GET"},   {GEX_OP_USER, "USER"}, {GEX_OP_USER_NC, "USER_NC"}};
constexpr BitName kTokenInfo[] = {{GEX_TI_SRCRANK, "SRCRANK"},
                                  {GEX_TI_ENTRY, "ENTRY"},
                                  {GEX_TI_IS_REQ, "IS_REQ"},
                                  {GEX_TI_IS_LONG, "IS_LONG"},
                                  {GEX_TI_EP, "EP"}};

size_t write_set(char* buffer, std::span<const BitName> names, const char* prefix, uint32_t mask) {
  std::string text;
  for (const BitName& name : names) {
    if (!(mask & name.bit)) continue;
    mask &= ~name.bit;
    text.append(text.empty() ? "" : "|").append(prefix).append(name.name);
  }
  if (mask != 0 || text.empty()) {
    char rest[16];
    std::snprintf(rest, sizeof rest, "0x%" PRIx32, mask);
    text.append(text.empty() ? "" : "|").append(rest);
  }
  if (buffer) std::memcpy(buffer, text.c_str(), text.size() + 1);
  return text.size() + 1;
}

constexpr size_t kItemBytes = 64; /* maximum length of an item of a list, as text */

}  // namespace

size_t gasnett_format_dt(char* buf, gex_DT_t mask) {
  return write_set(buf, kDataTypes, "GEX_DT_", mask);
}
size_t gasnett_format_op(char* buf, gex_OP_t mask) {
  return write_set(buf, kOperations, "GEX_OP_", mask);
}
size_t gasnett_format_ti(char* buf, gex_TI_t mask) {
  return write_set(buf, kTokenInfo, "GEX_TI_", mask);
}

size_t gasnett_format_memveclist_bufsz(size_t count) { return 256 + count * kItemBytes; }

gasnett_memveclist_stats_t gasnett_format_memveclist(char* buf, size_t count,
                                                     gex_Memvec_t const* list) {
  gasnett_memveclist_stats_t s{};
  for (size_t i = 0; i < count; ++i) {
    auto* const first = static_cast<char*>(list[i].gex_addr);
    auto* const last = first + (list[i].gex_len ? list[i].gex_len - 1 : 0);
    s.minsz = i == 0 ? list[i].gex_len : std::min(s.minsz, list[i].gex_len);
    s.maxsz = std::max(s.maxsz, list[i].gex_len);
    s.total += list[i].gex_len;
    s.minaddr = i == 0 ? first : std::min(s.minaddr, static_cast<void*>(first));
    s.maxaddr = std::max(s.maxaddr, static_cast<void*>(last));
  }
  char* end = buf + std::sprintf(buf, "%zu entries, totalsz=%" PRIuPTR ", bounds=[%p...%p]\nlist=[",
                                 count, s.total, s.minaddr, s.maxaddr);
  for (size_t i = 0; i < count; ++i)
    end += std::sprintf(end, "%s{%p,%zu}", i ? ", " : "", list[i].gex_addr, list[i].gex_len);
  std::strcpy(end, "]");
  return s;
}

size_t gasnett_format_addrlist_bufsz(size_t count) { return 256 + count * kItemBytes; }

gasnett_addrlist_stats_t gasnett_format_addrlist(char* buf, size_t count, void* const* list,
                                                 size_t len) {
  gasnett_addrlist_stats_t s{};
  for (size_t i = 0; i < count; ++i) {
    void* const last = static_cast<char*>(list[i]) + (len ? len - 1 : 0);
    s.minaddr = i == 0 ? list[i] : std::min(s.minaddr, list[i]);
    s.maxaddr = std::max(s.maxaddr, last);
  }
  char* end = buf + std::sprintf(buf, "%zu entries, totalsz=%zu, bounds=[%p...%p]\nlist=[", count,
                                 count * len, s.minaddr, s.maxaddr);
  for (size_t i = 0; i < count; ++i) end += std::sprintf(end, "%s%p", i ? ", " : "", list[i]);
  std::strcpy(end, "]");
  return s;
}

size_t gasnett_format_putsgets_bufsz(size_t levels) { return 512 + levels * 3 * kItemBytes; }

size_t gasnett_format_putsgets(char* buf, void* /*stats*/, gex_TM_t /*tm*/, gex_Rank_t rank,
                               void* dst, const ptrdiff_t dststrides[], void* src,
                               const ptrdiff_t srcstrides[], size_t elemsz, const size_t count[],
                               size_t levels) {
  char* end = buf + std::sprintf(buf, "rank=%" PRIu32 " dst=%p src=%p elemsz=%zu levels=%zu", rank,
                                 dst, src, elemsz, levels);
  size_t total = elemsz;
  for (size_t i = 0; i < levels; ++i) {
    total *= count[i];
    end += std::sprintf(end, " [count=%zu dststride=%td srcstride=%td]", count[i], dststrides[i],
                        srcstrides[i]);
  }
  return total;
}

void* gasnett_mmap(uintptr_t bytes) {
  void* const address =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED)
    gasnett_fatalerror_nopos("no memory for %" PRIuPTR " bytes: %s", bytes, std::strerror(errno));
  return address;
}
