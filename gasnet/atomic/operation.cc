/* operation.cc: atomics on memory of other processes, and of neighbours if the operation is not a
 * constant. Message path.
 *
 * GET, SET and SWAP treat a value as an unsigned integer, so that its bits arrive as they are.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <bit>
#include <cstring>

#include "atomic/domain.h"
#include "job/thread.h"
#include "rma/event.h"
#include "rma/remote.h"
#include "segment/segment.h"
#include "team/team.h"
#include "trace/trace.h"

namespace lintel::gasnet {
namespace {

/** The codes of a data type in GASNet and Portals. */
struct Type {
  size_t bytes;
  ptl_datatype_t values;
  ptl_datatype_t bits;
};

Type type_of(gex_DT_t type) {
  switch (type) {
    case GEX_DT_I32:
      return {4, PTL_INT32_T, PTL_UINT32_T};
    case GEX_DT_U32:
      return {4, PTL_UINT32_T, PTL_UINT32_T};
    case GEX_DT_I64:
      return {8, PTL_INT64_T, PTL_UINT64_T};
    case GEX_DT_U64:
      return {8, PTL_UINT64_T, PTL_UINT64_T};
    case GEX_DT_FLT:
      return {4, PTL_FLOAT, PTL_UINT32_T};
    default:
      return {8, PTL_DOUBLE, PTL_UINT64_T};
  }
}

const void* one_of(gex_DT_t type) {
  static constexpr uint32_t integer32 = 1;
  static constexpr uint64_t integer64 = 1;
  static constexpr float real32 = 1;
  static constexpr double real64 = 1;
  switch (type) {
    case GEX_DT_I32:
    case GEX_DT_U32:
      return &integer32;
    case GEX_DT_I64:
    case GEX_DT_U64:
      return &integer64;
    case GEX_DT_FLT:
      return &real32;
    default:
      return &real64;
  }
}

/** @param a, b  operands of the call. */
Atomic atomic_for(gex_DT_t data_type, gex_OP_t op, const void* a, const void* b) {
  static constexpr uint64_t zero = 0;
  const Type type = type_of(data_type);
  const auto arithmetic = [&](ptl_op_t operation, const void* data) {
    return Atomic{operation, type.values, type.bytes, data, nullptr};
  };
  switch (op) {
    case GEX_OP_ADD:
    case GEX_OP_FADD:
      return arithmetic(PTL_SUM, a);
    case GEX_OP_SUB:
    case GEX_OP_FSUB:
      return arithmetic(PTL_DIFF, a);
    case GEX_OP_INC:
    case GEX_OP_FINC:
      return arithmetic(PTL_SUM, one_of(data_type));
    case GEX_OP_DEC:
    case GEX_OP_FDEC:
      return arithmetic(PTL_DIFF, one_of(data_type));
    case GEX_OP_MULT:
    case GEX_OP_FMULT:
      return arithmetic(PTL_PROD, a);
    case GEX_OP_MIN:
    case GEX_OP_FMIN:
      return arithmetic(PTL_MIN, a);
    case GEX_OP_MAX:
    case GEX_OP_FMAX:
      return arithmetic(PTL_MAX, a);
    case GEX_OP_AND:
    case GEX_OP_FAND:
      return arithmetic(PTL_BAND, a);
    case GEX_OP_OR:
    case GEX_OP_FOR:
      return arithmetic(PTL_BOR, a);
    case GEX_OP_XOR:
    case GEX_OP_FXOR:
      return arithmetic(PTL_BXOR, a);
    case GEX_OP_GET:
      return {PTL_BOR, type.bits, type.bytes, &zero, nullptr};
    case GEX_OP_SET:
    case GEX_OP_SWAP:
      return {PTL_SWAP, type.bits, type.bytes, a, a};
    case GEX_OP_CAS:
    case GEX_OP_FCAS:
      return {PTL_CSWAP, type.values, type.bytes, b, a};
    default:
      gasnett_fatalerror_nopos("gex_AD_Op: there is no operation 0x%x", op);
  }
}

Place place_of(gex_AD_t ad, gex_Rank_t rank, const void* address, gex_OP_t op, gex_Flags_t flags) {
  check_may_communicate("gex_AD_Op");
  const EndpointName name =
      flags & GEX_FLAG_RANK_IS_JOBRANK ? EndpointName{rank, 0} : endpoint_of(ad->team, rank);
  LINTEL_GASNET_TRACE_TRANSFER('O', name.jobrank,
                               "operation 0x%x, type 0x%x, rank %u, address %p, %zu bytes", op,
                               ad->type, rank, address, type_of(ad->type).bytes);
  return place_in_segment("gex_AD_Op", name, address, type_of(ad->type).bytes);
}

gasneti_event* ThreadEvents::*category_of(gex_OP_t op) {
  if (op == GEX_OP_GET) return &ThreadEvents::gets;
  if (op == GEX_OP_SET) return &ThreadEvents::puts;
  return &ThreadEvents::updates;
}

void start(gasneti_event& event, const Place& place, gex_DT_t type, void* result, gex_OP_t op,
           const void* a, const void* b) {
  event.update(place, atomic_for(type, op, a, b),
               (op & GASNETI_OP_FETCHING_MASK) != 0 ? result : nullptr);
}

/** @param function  the inline function of the type T. */
template <typename T, typename Function>
void apply(Function&& function, void* target, void* result, gex_OP_t op, const void* a,
           const void* b, gex_Flags_t flags) {
  T first, second;
  std::memcpy(&first, a, sizeof first);
  std::memcpy(&second, b, sizeof second);
  function(target, static_cast<T*>(result), op, first, second, flags);
}

}  // namespace
}  // namespace lintel::gasnet

using namespace lintel::gasnet;

void gasneti_ad_near(gex_DT_t dt, void* target, void* result, gex_OP_t op, const void* a,
                     const void* b, gex_Flags_t flags) {
  switch (dt) {
    case GEX_DT_I32:
      return apply<int32_t>([](auto... values) { gasneti_ad_apply_I32(values...); }, target, result,
                            op, a, b, flags);
    case GEX_DT_U32:
      return apply<uint32_t>([](auto... values) { gasneti_ad_apply_U32(values...); }, target,
                             result, op, a, b, flags);
    case GEX_DT_I64:
      return apply<int64_t>([](auto... values) { gasneti_ad_apply_I64(values...); }, target, result,
                            op, a, b, flags);
    case GEX_DT_U64:
      return apply<uint64_t>([](auto... values) { gasneti_ad_apply_U64(values...); }, target,
                             result, op, a, b, flags);
    case GEX_DT_FLT:
      return apply<float>([](auto... values) { gasneti_ad_apply_FLT(values...); }, target, result,
                          op, a, b, flags);
    default:
      return apply<double>([](auto... values) { gasneti_ad_apply_DBL(values...); }, target, result,
                           op, a, b, flags);
  }
}

gex_Event_t gasneti_ad_far_nb(gex_AD_t ad, void* result, gex_Rank_t rank, void* address,
                              gex_OP_t op, const void* a, const void* b, gex_Flags_t flags) {
  const Place place = place_of(ad, rank, address, op, flags);
  return start_explicit(category_of(op), [&](gasneti_event& event) {
    start(event, place, ad->type, result, op, a, b);
  });
}

int gasneti_ad_far_nbi(gex_AD_t ad, void* result, gex_Rank_t rank, void* address, gex_OP_t op,
                       const void* a, const void* b, gex_Flags_t flags) {
  const Place place = place_of(ad, rank, address, op, flags);
  ThreadEvents& events = this_threads_events();
  start(implicit(events, events.*category_of(op)), place, ad->type, result, op, a, b);
  return 0;
}
