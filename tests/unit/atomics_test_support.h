// Calls of apply_atomic() for values of each datatype.
#pragma once

#include <complex>
#include <cstdint>
#include <cstring>

#include <gtest/gtest.h>

#include "core/operations/atomics.h"
#include "portals4.h"

namespace lintel::test {

// Calls f.operator()<T>(datatype) for every datatype.
template <typename F>
void for_each_datatype(F&& f) {
  f.template operator()<int8_t>(PTL_INT8_T);
  f.template operator()<uint8_t>(PTL_UINT8_T);
  f.template operator()<int16_t>(PTL_INT16_T);
  f.template operator()<uint16_t>(PTL_UINT16_T);
  f.template operator()<int32_t>(PTL_INT32_T);
  f.template operator()<uint32_t>(PTL_UINT32_T);
  f.template operator()<int64_t>(PTL_INT64_T);
  f.template operator()<uint64_t>(PTL_UINT64_T);
  f.template operator()<float>(PTL_FLOAT);
  f.template operator()<std::complex<float>>(PTL_FLOAT_COMPLEX);
  f.template operator()<double>(PTL_DOUBLE);
  f.template operator()<std::complex<double>>(PTL_DOUBLE_COMPLEX);
  f.template operator()<long double>(PTL_LONG_DOUBLE);
  f.template operator()<std::complex<long double>>(PTL_LONG_DOUBLE_COMPLEX);
}

// apply_atomic() to memory that may be touched without protection.
inline void apply_at(ptl_op_t operation, ptl_datatype_t datatype, void* target, const void* data,
                     const void* operand, void* fetched) {
  MemoryRegion region;
  ASSERT_TRUE(region.open(target, datatype_size(datatype), false, true));
  ASSERT_TRUE(apply_atomic(operation, datatype, region, 0, static_cast<const std::byte*>(data),
                           static_cast<const std::byte*>(operand), static_cast<std::byte*>(fetched),
                           1));
}

template <typename T>
[[nodiscard]] T load_value(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

}  // namespace lintel::test
