/* reduction.cc: the built-in operations. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "coll/reduction.h"

#include <bit>
#include <type_traits>

namespace lintel::gasnet {
namespace {

template <typename T, typename Operation>
void for_each_pair(const void* left, void* right, size_t items, Operation&& operation) {
  const T* const x = static_cast<const T*>(left);
  T* const y = static_cast<T*>(right);
  for (size_t i = 0; i < items; ++i) y[i] = operation(x[i], y[i]);
}

/** Results that do not depend on the sign are computed in unsigned integers: overflow wraps. */
template <typename T>
struct Wrapping {
  using Type = T;
};
template <typename T>
requires std::is_integral_v<T>
struct Wrapping<T> {
  using Type = std::make_unsigned_t<T>;
};

template <typename T>
void combine_as(gex_OP_t operation, const void* left, void* right, size_t items) {
  using Bits = typename Wrapping<T>::Type;
  switch (operation) {
    case GEX_OP_ADD:
      return for_each_pair<Bits>(left, right, items, [](Bits a, Bits b) -> Bits { return a + b; });
    case GEX_OP_MULT:
      return for_each_pair<Bits>(left, right, items, [](Bits a, Bits b) -> Bits { return a * b; });
    case GEX_OP_MIN:
      return for_each_pair<T>(left, right, items, [](T a, T b) { return a < b ? a : b; });
    case GEX_OP_MAX:
      return for_each_pair<T>(left, right, items, [](T a, T b) { return a > b ? a : b; });
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    if (operation == GEX_OP_AND)
      for_each_pair<Bits>(left, right, items, [](Bits a, Bits b) -> Bits { return a & b; });
    else if (operation == GEX_OP_OR)
      for_each_pair<Bits>(left, right, items, [](Bits a, Bits b) -> Bits { return a | b; });
    else
      for_each_pair<Bits>(left, right, items, [](Bits a, Bits b) -> Bits { return a ^ b; });
  }
}

constexpr gex_OP_t kForNumbers = GEX_OP_ADD | GEX_OP_MULT | GEX_OP_MIN | GEX_OP_MAX;
constexpr gex_OP_t kForBits = GEX_OP_AND | GEX_OP_OR | GEX_OP_XOR;
constexpr gex_OP_t kOfClient = GEX_OP_USER | GEX_OP_USER_NC;

/** 0 for a type that is not legal or has no fixed size. */
size_t bytes_of(gex_DT_t type) {
  switch (type) {
    case GEX_DT_I32:
    case GEX_DT_U32:
    case GEX_DT_FLT:
      return 4;
    case GEX_DT_I64:
    case GEX_DT_U64:
    case GEX_DT_DBL:
      return 8;
    default:
      return 0;
  }
}

}  // namespace

void Reduction::combine(const void* left, void* right, size_t items) const {
  if (items == 0) return;
  if (is_of_client()) {
    function(left, right, items, client_data);
    return;
  }
  switch (type) {
    case GEX_DT_I32:
      return combine_as<int32_t>(operation, left, right, items);
    case GEX_DT_U32:
      return combine_as<uint32_t>(operation, left, right, items);
    case GEX_DT_I64:
      return combine_as<int64_t>(operation, left, right, items);
    case GEX_DT_U64:
      return combine_as<uint64_t>(operation, left, right, items);
    case GEX_DT_FLT:
      return combine_as<float>(operation, left, right, items);
    default:
      return combine_as<double>(operation, left, right, items);
  }
}

ptl_op_t Reduction::portals_operation() const {
  switch (operation) {
    case GEX_OP_ADD:
      return PTL_SUM;
    case GEX_OP_MULT:
      return PTL_PROD;
    case GEX_OP_MIN:
      return PTL_MIN;
    case GEX_OP_MAX:
      return PTL_MAX;
    case GEX_OP_AND:
      return PTL_BAND;
    case GEX_OP_OR:
      return PTL_BOR;
    default:
      return PTL_BXOR;
  }
}

ptl_datatype_t Reduction::portals_type() const {
  switch (type) {
    case GEX_DT_I32:
      return PTL_INT32_T;
    case GEX_DT_U32:
      return PTL_UINT32_T;
    case GEX_DT_I64:
      return PTL_INT64_T;
    case GEX_DT_U64:
      return PTL_UINT64_T;
    case GEX_DT_FLT:
      return PTL_FLOAT;
    default:
      return PTL_DOUBLE;
  }
}

void check_reduction(const char* call, const Reduction& reduction) {
  const bool is_float = (reduction.type & (GEX_DT_FLT | GEX_DT_DBL)) != 0;
  const size_t bytes = bytes_of(reduction.type);
  const gex_OP_t legal = reduction.type == GEX_DT_USER ? kOfClient
                         : is_float                    ? kForNumbers | kOfClient
                                                       : kForNumbers | kForBits | kOfClient;
  if (bytes == 0 && reduction.type != GEX_DT_USER)
    gasnett_fatalerror_nopos("%s: 0x%x is no data type", call, reduction.type);
  if (!std::has_single_bit(reduction.operation) || (reduction.operation & ~legal) != 0)
    gasnett_fatalerror_nopos("%s: operation 0x%x is not legal for data type 0x%x", call,
                             reduction.operation, reduction.type);
  if (reduction.item_bytes == 0 || (bytes != 0 && reduction.item_bytes != bytes))
    gasnett_fatalerror_nopos("%s: dt_sz is %zu for data type 0x%x", call, reduction.item_bytes,
                             reduction.type);
  if (reduction.count == 0) gasnett_fatalerror_nopos("%s: dt_cnt must not be 0", call);
  if (reduction.is_of_client() && !reduction.function)
    gasnett_fatalerror_nopos("%s: user_op is NULL", call);
}

}  // namespace lintel::gasnet
