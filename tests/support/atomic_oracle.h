// The definition of the atomic operations, independent of the library: which combinations are legal
// (spec table 3-4) and what each does to one item.
#pragma once

#include <portals4.h>

#include <cstddef>
#include <random>
#include <span>

namespace lintel::test {

enum class Numbers { integral, floating, complex };

struct Datatype {
  ptl_datatype_t type;
  std::size_t bytes;
  Numbers numbers;
};

[[nodiscard]] std::span<const Datatype> all_datatypes();
[[nodiscard]] std::span<const ptl_op_t> all_atomic_operations();

enum class AtomicFunction { atomic, fetch_atomic, swap };

[[nodiscard]] bool is_legal(AtomicFunction function, ptl_op_t operation, const Datatype& datatype);
// Whether the operation is a swap that is limited to one item.
[[nodiscard]] bool is_single_item(ptl_op_t operation);

// Draws a value; sums and products of such values are exact. Zero in one of four cases.
void draw_item(std::mt19937& random, const Datatype& datatype, std::byte* item);

// Draws a value that may also be a limit, infinite or not a number.
void draw_extreme_item(std::mt19937& random, const Datatype& datatype, std::byte* item);

// Computes the new value of the target item. Only the conditional and masked swaps use `operand`.
void apply_item(ptl_op_t operation, const Datatype& datatype, const std::byte* target,
                const std::byte* initiator, const std::byte* operand, std::byte* result);

// Whether the values are equal, or both are not a number. Padding bytes of a long double are not
// compared.
[[nodiscard]] bool equal_items(const Datatype& datatype, const std::byte* left,
                               const std::byte* right);

}  // namespace lintel::test
