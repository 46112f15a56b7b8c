#include "transfer/atomic_types.h"

#include <array>
#include <complex>
#include <cstdint>
#include <cstring>

namespace lintel::ofi {
namespace {

enum class Shape : uint8_t { none, integer, real, complex };

struct Type {
  Shape shape;
  uint8_t bytes;
  ptl_datatype_t portals;
};

constexpr std::array<Type, FI_DATATYPE_LAST> make_types() noexcept {
  std::array<Type, FI_DATATYPE_LAST> types{};
  types[FI_INT8] = {Shape::integer, 1, PTL_INT8_T};
  types[FI_UINT8] = {Shape::integer, 1, PTL_UINT8_T};
  types[FI_INT16] = {Shape::integer, 2, PTL_INT16_T};
  types[FI_UINT16] = {Shape::integer, 2, PTL_UINT16_T};
  types[FI_INT32] = {Shape::integer, 4, PTL_INT32_T};
  types[FI_UINT32] = {Shape::integer, 4, PTL_UINT32_T};
  types[FI_INT64] = {Shape::integer, 8, PTL_INT64_T};
  types[FI_UINT64] = {Shape::integer, 8, PTL_UINT64_T};
  types[FI_FLOAT] = {Shape::real, 4, PTL_FLOAT};
  types[FI_DOUBLE] = {Shape::real, 8, PTL_DOUBLE};
  types[FI_FLOAT_COMPLEX] = {Shape::complex, 8, PTL_FLOAT_COMPLEX};
  types[FI_DOUBLE_COMPLEX] = {Shape::complex, 16, PTL_DOUBLE_COMPLEX};
  types[FI_LONG_DOUBLE] = {Shape::real, sizeof(long double), PTL_LONG_DOUBLE};
  types[FI_LONG_DOUBLE_COMPLEX] = {Shape::complex, 2 * sizeof(long double),
                                   PTL_LONG_DOUBLE_COMPLEX};
  return types;
}
constexpr auto types = make_types();

constexpr std::array<ptl_op_t, FI_ATOMIC_OP_LAST> make_operations() noexcept {
  std::array<ptl_op_t, FI_ATOMIC_OP_LAST> operations{};
  operations[FI_MIN] = PTL_MIN;
  operations[FI_MAX] = PTL_MAX;
  operations[FI_SUM] = PTL_SUM;
  operations[FI_PROD] = PTL_PROD;
  operations[FI_LOR] = PTL_LOR;
  operations[FI_LAND] = PTL_LAND;
  operations[FI_BOR] = PTL_BOR;
  operations[FI_BAND] = PTL_BAND;
  operations[FI_LXOR] = PTL_LXOR;
  operations[FI_BXOR] = PTL_BXOR;
  operations[FI_ATOMIC_READ] = PTL_BOR;
  operations[FI_ATOMIC_WRITE] = PTL_SWAP;
  operations[FI_CSWAP] = PTL_CSWAP;
  operations[FI_CSWAP_NE] = PTL_CSWAP_NE;
  operations[FI_CSWAP_LE] = PTL_CSWAP_LE;
  operations[FI_CSWAP_LT] = PTL_CSWAP_LT;
  operations[FI_CSWAP_GE] = PTL_CSWAP_GE;
  operations[FI_CSWAP_GT] = PTL_CSWAP_GT;
  operations[FI_MSWAP] = PTL_MSWAP;
  return operations;
}
constexpr auto operations = make_operations();

Shape shape_of(fi_datatype type) noexcept {
  return static_cast<size_t>(type) < types.size() ? types[type].shape : Shape::none;
}

bool accepts(Shape shape, fi_op operation) noexcept {
  switch (operation) {
    case FI_LOR:
    case FI_LAND:
    case FI_BOR:
    case FI_BAND:
    case FI_LXOR:
    case FI_BXOR:
    case FI_MSWAP:
      return shape == Shape::integer;
    case FI_MIN:
    case FI_MAX:
    case FI_CSWAP_LE:
    case FI_CSWAP_LT:
    case FI_CSWAP_GE:
    case FI_CSWAP_GT:
      return shape != Shape::complex;
    default:
      return true;
  }
}

template <typename Real>
std::array<std::byte, most_atomic_bytes> negative_zeros() noexcept {
  std::array<std::byte, most_atomic_bytes> items{};
  const Real zero = -Real{0};
  for (size_t i = 0; i + sizeof zero <= items.size(); i += sizeof zero)
    memcpy(&items[i], &zero, sizeof zero);
  return items;
}

}  // namespace

size_t item_bytes(fi_datatype type) noexcept {
  return shape_of(type) == Shape::none ? 0 : types[type].bytes;
}

ptl_datatype_t portals_type(fi_datatype type) noexcept { return types[type].portals; }

ptl_op_t portals_operation(fi_datatype type, fi_op operation) noexcept {
  if (operation == FI_ATOMIC_READ && shape_of(type) != Shape::integer) return PTL_SUM;
  return operations[operation];
}

bool is_available(AtomicCall call, fi_datatype type, fi_op operation) noexcept {
  const Shape shape = shape_of(type);
  if (shape == Shape::none || static_cast<size_t>(operation) >= operations.size()) return false;
  const bool compares = operation >= FI_CSWAP;
  if (compares != (call == AtomicCall::compare)) return false;
  if (operation == FI_ATOMIC_READ && call != AtomicCall::fetch) return false;
  return accepts(shape, operation);
}

size_t most_items(fi_datatype type) noexcept { return most_atomic_bytes / item_bytes(type); }

const void* neutral_items(fi_datatype type) noexcept {
  static const std::array<std::byte, most_atomic_bytes> zeros{};
  static const auto floats = negative_zeros<float>();
  static const auto doubles = negative_zeros<double>();
  static const auto long_doubles = negative_zeros<long double>();
  switch (type) {
    case FI_FLOAT:
    case FI_FLOAT_COMPLEX:
      return floats.data();
    case FI_DOUBLE:
    case FI_DOUBLE_COMPLEX:
      return doubles.data();
    case FI_LONG_DOUBLE:
    case FI_LONG_DOUBLE_COMPLEX:
      return long_doubles.data();
    default:
      return zeros.data();
  }
}

}  // namespace lintel::ofi
