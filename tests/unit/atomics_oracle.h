// The specified results of the atomic operations, computed in the plainest way: integers with 128
// bits, the product of complex numbers by its formula.
#pragma once

#include <array>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "core/operations/atomics.h"
#include "portals4.h"

namespace lintel::test {

template <typename T>
struct IsComplex : std::false_type {};
template <typename T>
struct IsComplex<std::complex<T>> : std::true_type {};

template <typename T>
inline constexpr bool is_complex_type = IsComplex<T>::value;

__extension__ using Wide = __int128;

template <typename T>
[[nodiscard]] T expected_value(ptl_op_t operation, T target, T data, T operand) {
  if constexpr (std::is_integral_v<T>) {
    const Wide t = target;
    const Wide d = data;
    switch (operation) {
      case PTL_SUM:
        return static_cast<T>(t + d);
      case PTL_DIFF:
        return static_cast<T>(t - d);
      case PTL_PROD:
        // The low bits of a product do not depend on the sign. They fit if computed from two
        // halves.
        return static_cast<T>(static_cast<uint64_t>(target) * static_cast<uint64_t>(data));
      case PTL_LOR:
        return (t || d) ? T{1} : T{0};
      case PTL_LAND:
        return (t && d) ? T{1} : T{0};
      case PTL_LXOR:
        return (!t != !d) ? T{1} : T{0};
      case PTL_BOR:
        return static_cast<T>(t | d);
      case PTL_BAND:
        return static_cast<T>(t & d);
      case PTL_BXOR:
        return static_cast<T>(t ^ d);
      case PTL_MSWAP:
        for (unsigned bit = 0; bit < 8 * sizeof(T); ++bit) {
          const auto mask = static_cast<T>(T{1} << bit);
          if (operand & mask) target = static_cast<T>((target & ~mask) | (data & mask));
        }
        return target;
      default:
        break;
    }
  } else {
    switch (operation) {
      case PTL_SUM:
        return target + data;
      case PTL_DIFF:
        return target - data;
      case PTL_PROD:
        if constexpr (is_complex_type<T>) {
          return {target.real() * data.real() - target.imag() * data.imag(),
                  target.real() * data.imag() + target.imag() * data.real()};
        } else {
          return target * data;
        }
      default:
        break;
    }
  }
  if constexpr (!is_complex_type<T>) {
    switch (operation) {
      case PTL_MIN:
        return data < target ? data : target;
      case PTL_MAX:
        return data > target ? data : target;
      case PTL_CSWAP_LE:
        return operand <= target ? data : target;
      case PTL_CSWAP_LT:
        return operand < target ? data : target;
      case PTL_CSWAP_GE:
        return operand >= target ? data : target;
      case PTL_CSWAP_GT:
        return operand > target ? data : target;
      default:
        break;
    }
  }
  switch (operation) {
    case PTL_SWAP:
      return data;
    case PTL_CSWAP:
      return operand == target ? data : target;
    case PTL_CSWAP_NE:
      return operand == target ? target : data;
    default:
      ADD_FAILURE() << "no expectation for operation " << operation;
      return target;
  }
}

// Equal for a program: the same number, or both not a number.
template <typename T>
[[nodiscard]] bool same_value(const T& a, const T& b) {
  if constexpr (is_complex_type<T>) {
    return same_value(a.real(), b.real()) && same_value(a.imag(), b.imag());
  } else {
    return a == b || (a != a && b != b);
  }
}

// Mostly values at limits. Floating values are few and exact, so that comparisons are often equal
// and no result depends on rounding.
template <typename T>
[[nodiscard]] T interesting_value(std::mt19937_64& random) {
  if constexpr (is_complex_type<T>) {
    using Part = typename T::value_type;
    const auto part = [&random] { return static_cast<Part>(static_cast<int>(random() % 7) - 3); };
    const Part real = part();
    return {real, part()};
  } else if constexpr (std::is_integral_v<T>) {
    switch (random() % 8) {
      case 0:
        return 0;
      case 1:
        return 1;
      case 2:
        return static_cast<T>(-1);
      case 3:
        return std::numeric_limits<T>::max();
      case 4:
        return std::numeric_limits<T>::min();
      case 5:
        return static_cast<T>(random() % 4);
      default:
        return static_cast<T>(random());
    }
  } else {
    switch (random() % 10) {
      case 0:
        return T{0};
      case 1:
        return -T{0};
      case 2:
        return std::numeric_limits<T>::infinity();
      case 3:
        return -std::numeric_limits<T>::infinity();
      case 4:
        return std::numeric_limits<T>::quiet_NaN();
      case 5:
        return std::numeric_limits<T>::max();
      default:
        return static_cast<T>(static_cast<int>(random() % 9) - 4) / 2;
    }
  }
}

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
