// One operation template for all atomics, and the table that says which combinations exist
// (spec table 3-4). Used by atomics.cc only. Message path.
#pragma once

#include <array>
#include <atomic>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "core/operations/atomics.h"

namespace lintel::atomics_detail {

// Types of the items, in the order of ptl_datatype_t.
using Datatypes = std::tuple<int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t,
                             uint64_t, float, std::complex<float>, double, std::complex<double>,
                             long double, std::complex<long double>>;
static_assert(std::tuple_size_v<Datatypes> == atomic_datatypes);

template <typename T>
inline constexpr bool is_complex = false;
template <typename T>
inline constexpr bool is_complex<std::complex<T>> = true;

// Table 3-4, one row per operation.
struct Legal {
  ptl_op_t operation;
  bool integral, floating, complex;
  bool atomic, fetch_atomic, swap;
};
inline constexpr std::array<Legal, atomic_operations> table_3_4 = {{
    {PTL_MIN, true, true, false, true, true, false},
    {PTL_MAX, true, true, false, true, true, false},
    {PTL_SUM, true, true, true, true, true, false},
    {PTL_DIFF, true, true, true, true, true, false},
    {PTL_PROD, true, true, true, true, true, false},
    {PTL_LOR, true, false, false, true, true, false},
    {PTL_LAND, true, false, false, true, true, false},
    {PTL_BOR, true, false, false, true, true, false},
    {PTL_BAND, true, false, false, true, true, false},
    {PTL_LXOR, true, false, false, true, true, false},
    {PTL_BXOR, true, false, false, true, true, false},
    {PTL_SWAP, true, true, true, false, false, true},
    {PTL_CSWAP, true, true, true, false, false, true},
    {PTL_CSWAP_NE, true, true, true, false, false, true},
    {PTL_CSWAP_LE, true, true, false, false, false, true},
    {PTL_CSWAP_LT, true, true, false, false, false, true},
    {PTL_CSWAP_GE, true, true, false, false, false, true},
    {PTL_CSWAP_GT, true, true, false, false, false, true},
    {PTL_MSWAP, true, false, false, false, false, true},
}};

template <typename T>
[[nodiscard]] constexpr bool allows(const Legal& row) noexcept {
  if constexpr (std::is_integral_v<T>) return row.integral;
  if constexpr (std::is_floating_point_v<T>) return row.floating;
  return is_complex<T> && row.complex;
}

// ---- one value in memory of any alignment

// The padding of a long double stays as it was; what registers hold there is not stored.
template <typename T>
inline constexpr size_t value_bytes =
    std::is_same_v<T, long double>&& std::numeric_limits<long double>::digits == 64 ? 10
                                                                                    : sizeof(T);

template <typename T>
[[nodiscard]] inline T load(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename T>
inline void store(std::byte* to, const T& value) noexcept {
  if constexpr (is_complex<T>) {
    using Part = typename T::value_type;
    store<Part>(to, value.real());
    store<Part>(to + sizeof(Part), value.imag());
  } else {
    std::memcpy(to, &value, value_bytes<T>);
  }
}

// ---- the operation

// Unsigned and at least int wide, so that overflow wraps also where int would promote.
template <typename T>
using Wrapping = std::common_type_t<std::make_unsigned_t<T>, unsigned>;

template <ptl_op_t operation, typename T>
[[nodiscard]] inline T combine_integers(T target, T data, T operand) noexcept {
  const auto t = static_cast<Wrapping<T>>(target);
  const auto d = static_cast<Wrapping<T>>(data);
  if constexpr (operation == PTL_SUM) return static_cast<T>(t + d);
  if constexpr (operation == PTL_DIFF) return static_cast<T>(t - d);
  if constexpr (operation == PTL_PROD) return static_cast<T>(t * d);
  if constexpr (operation == PTL_LOR) return static_cast<T>(t != 0 || d != 0);
  if constexpr (operation == PTL_LAND) return static_cast<T>(t != 0 && d != 0);
  if constexpr (operation == PTL_LXOR) return static_cast<T>((t != 0) != (d != 0));
  if constexpr (operation == PTL_BOR) return static_cast<T>(t | d);
  if constexpr (operation == PTL_BAND) return static_cast<T>(t & d);
  if constexpr (operation == PTL_BXOR) return static_cast<T>(t ^ d);
  if constexpr (operation == PTL_MSWAP) {
    const auto mask = static_cast<Wrapping<T>>(operand);
    return static_cast<T>((t & ~mask) | (d & mask));
  }
}

// Whether the data is to replace the target, for the operations that choose between the two.
template <ptl_op_t operation>
inline constexpr bool chooses = operation == PTL_MIN || operation == PTL_MAX ||
                                (operation >= PTL_SWAP && operation <= PTL_CSWAP_GT);

template <ptl_op_t operation, typename T>
[[nodiscard]] inline bool replaces(const T& target, const T& data, const T& operand) noexcept {
  if constexpr (operation == PTL_MIN) return data < target;
  if constexpr (operation == PTL_MAX) return data > target;
  if constexpr (operation == PTL_SWAP) return true;
  if constexpr (operation == PTL_CSWAP) return operand == target;
  if constexpr (operation == PTL_CSWAP_NE) return operand != target;
  if constexpr (operation == PTL_CSWAP_LE) return operand <= target;
  if constexpr (operation == PTL_CSWAP_LT) return operand < target;
  if constexpr (operation == PTL_CSWAP_GE) return operand >= target;
  if constexpr (operation == PTL_CSWAP_GT) return operand > target;
}

template <ptl_op_t operation, typename T>
[[nodiscard]] inline T combine(const T& target, const T& data, const T& operand) noexcept {
  if constexpr (chooses<operation>) {
    return data;
  } else if constexpr (std::is_integral_v<T>) {
    return combine_integers<operation, T>(target, data, operand);
  } else if constexpr (operation == PTL_SUM) {
    return target + data;
  } else if constexpr (operation == PTL_DIFF) {
    return target - data;
  } else {
    static_assert(operation == PTL_PROD);
    return target * data;
  }
}

template <ptl_op_t operation, typename T>
[[nodiscard]] inline bool leaves_target(const T& target, const T& data, const T& operand) noexcept {
  if constexpr (chooses<operation>) return !replaces<operation>(target, data, operand);
  return false;
}

// `item`: a private copy of the target's value, which becomes the new value. False: it stays.
template <ptl_op_t operation, typename T>
bool update_copy(std::byte* item, const std::byte* data, const std::byte* operand) noexcept {
  const T old_value = load<T>(item);
  const T data_value = load<T>(data);
  const T operand_value = is_single_item(operation) ? load<T>(operand) : T{};
  if (leaves_target<operation, T>(old_value, data_value, operand_value)) return false;
  store<T>(item, combine<operation, T>(old_value, data_value, operand_value));
  return true;
}

// ---- the operation on memory that the processor can change atomically

template <size_t size>
using Bits = std::conditional_t<
    size == 1, uint8_t,
    std::conditional_t<size == 2, uint16_t, std::conditional_t<size == 4, uint32_t, uint64_t>>>;

template <typename T>
inline constexpr bool fits_processor = sizeof(T) <= 8;

// The operations that the processor has an instruction for.
template <ptl_op_t operation, typename T>
inline constexpr bool has_instruction = operation == PTL_SWAP ||
                                        (std::is_integral_v<T> &&
                                         (operation == PTL_SUM || operation == PTL_DIFF ||
                                          operation == PTL_BOR || operation == PTL_BAND ||
                                          operation == PTL_BXOR));

template <ptl_op_t operation, typename Word>
inline Word fetch_operation(std::atomic_ref<Word> target, Word data) noexcept {
  if constexpr (operation == PTL_SUM) return target.fetch_add(data);
  if constexpr (operation == PTL_DIFF) return target.fetch_sub(data);
  if constexpr (operation == PTL_BOR) return target.fetch_or(data);
  if constexpr (operation == PTL_BAND) return target.fetch_and(data);
  if constexpr (operation == PTL_BXOR) return target.fetch_xor(data);
  if constexpr (operation == PTL_SWAP) return target.exchange(data);
}

template <ptl_op_t operation, typename T>
[[nodiscard]] inline Bits<sizeof(T)> update_in_place(std::atomic_ref<Bits<sizeof(T)>> target,
                                                     const std::byte* data,
                                                     const T& operand) noexcept {
  using Word = Bits<sizeof(T)>;
  const T data_value = load<T>(data);
  Word old_word = target.load();
  for (;;) {
    const T old_value = __builtin_bit_cast(T, old_word);
    if (leaves_target<operation, T>(old_value, data_value, operand)) return old_word;
    const Word new_word =
        __builtin_bit_cast(Word, combine<operation, T>(old_value, data_value, operand));
    if (target.compare_exchange_weak(old_word, new_word)) return old_word;
  }
}

// Null is an address like any other here, whatever the undefined-behaviour sanitizer thinks of it.
template <ptl_op_t operation, typename T>
__attribute__((no_sanitize("undefined"))) void apply_in_place(std::byte* target,
                                                              const std::byte* data,
                                                              const std::byte* operand,
                                                              std::byte* fetched,
                                                              size_t items) noexcept {
  using Word = Bits<sizeof(T)>;
  auto* words = reinterpret_cast<Word*>(target);
  const T operand_value = is_single_item(operation) ? load<T>(operand) : T{};
  for (size_t i = 0; i < items; ++i, data += sizeof(T)) {
    const std::atomic_ref<Word> word(words[i]);
    if constexpr (has_instruction<operation, T>) {
      if (fetched == nullptr) {
        fetch_operation<operation, Word>(word, load<Word>(data));
        continue;
      }
      store(fetched, fetch_operation<operation, Word>(word, load<Word>(data)));
    } else {
      const Word old_word = update_in_place<operation, T>(word, data, operand_value);
      if (fetched == nullptr) continue;
      store(fetched, old_word);
    }
    fetched += sizeof(T);
  }
}

// ---- the dispatch table

struct Functions {
  // Null where the processor cannot, or where table 3-4 does not allow the combination.
  void (*in_place)(std::byte* target, const std::byte* data, const std::byte* operand,
                   std::byte* fetched, size_t items) noexcept = nullptr;
  // Null where table 3-4 does not allow the combination.
  bool (*copy)(std::byte* item, const std::byte* data, const std::byte* operand) noexcept = nullptr;
};

template <size_t operation, size_t datatype>
[[nodiscard]] constexpr Functions functions_for() noexcept {
  using T = std::tuple_element_t<datatype, Datatypes>;
  constexpr auto code = static_cast<ptl_op_t>(operation);
  static_assert(sizeof(T) == datatype_sizes[datatype]);
  static_assert(table_3_4[operation].operation == code);
  Functions functions;
  if constexpr (allows<T>(table_3_4[operation])) {
    if constexpr (fits_processor<T>) functions.in_place = &apply_in_place<code, T>;
    functions.copy = &update_copy<code, T>;
  }
  return functions;
}

using Dispatch = std::array<std::array<Functions, atomic_datatypes>, atomic_operations>;

template <size_t operation, size_t... datatypes>
[[nodiscard]] constexpr std::array<Functions, atomic_datatypes> dispatch_row(
    std::index_sequence<datatypes...>) noexcept {
  return {functions_for<operation, datatypes>()...};
}

template <size_t... operations>
[[nodiscard]] constexpr Dispatch dispatch_table(std::index_sequence<operations...>) noexcept {
  return {dispatch_row<operations>(std::make_index_sequence<atomic_datatypes>())...};
}

}  // namespace lintel::atomics_detail
