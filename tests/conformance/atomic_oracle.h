// What atomic operations must do, written down independently of the library: which combinations are
// legal (spec table 3-4) and what each makes of one item.
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
// Swaps that are limited to one item.
[[nodiscard]] bool is_single_item(ptl_op_t operation);

// A value whose sums and products with others of its kind are exact; zero in one of four.
void draw_item(std::mt19937& random, const Datatype& datatype, std::byte* item);

// The new value of the target item. `operand` is used by the conditional and masked swaps only.
void apply_item(ptl_op_t operation, const Datatype& datatype, const std::byte* target,
                const std::byte* initiator, const std::byte* operand, std::byte* result);

// Equal as values: bytes of a long double that carry no value are not compared.
[[nodiscard]] bool equal_items(const Datatype& datatype, const std::byte* left,
                               const std::byte* right);

}  // namespace lintel::test
