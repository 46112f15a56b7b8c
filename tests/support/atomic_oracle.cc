// Straightforward computation of the atomic operations.
#include "support/atomic_oracle.h"

#include <complex>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <type_traits>

namespace lintel::test {

namespace {

template <typename Value>
struct IsComplex : std::false_type {};
template <typename Part>
struct IsComplex<std::complex<Part>> : std::true_type {};

template <typename Visitor>
void with_type(ptl_datatype_t type, Visitor&& visit) {
  switch (type) {
    case PTL_INT8_T:
      return visit(int8_t{});
    case PTL_UINT8_T:
      return visit(uint8_t{});
    case PTL_INT16_T:
      return visit(int16_t{});
    case PTL_UINT16_T:
      return visit(uint16_t{});
    case PTL_INT32_T:
      return visit(int32_t{});
    case PTL_UINT32_T:
      return visit(uint32_t{});
    case PTL_INT64_T:
      return visit(int64_t{});
    case PTL_UINT64_T:
      return visit(uint64_t{});
    case PTL_FLOAT:
      return visit(float{});
    case PTL_FLOAT_COMPLEX:
      return visit(std::complex<float>{});
    case PTL_DOUBLE:
      return visit(double{});
    case PTL_DOUBLE_COMPLEX:
      return visit(std::complex<double>{});
    case PTL_LONG_DOUBLE:
      return visit(static_cast<long double>(0));
    case PTL_LONG_DOUBLE_COMPLEX:
      return visit(std::complex<long double>{});
  }
  throw std::logic_error("datatype");
}

template <typename Value>
Value load(const std::byte* item) {
  Value value;
  std::memcpy(&value, item, sizeof(Value));
  return value;
}

// Computes modulo 2^n, without the undefined behaviour of signed overflow.
template <typename Value, typename Function>
Value modulo(Value left, Value right, Function function) {
  if constexpr (std::is_integral_v<Value>) {
    return static_cast<Value>(function(static_cast<uint64_t>(left), static_cast<uint64_t>(right)));
  } else {
    return function(left, right);
  }
}

template <typename Value>
Value combined(ptl_op_t operation, Value target, Value initiator) {
  switch (operation) {
    case PTL_SUM:
      return modulo(target, initiator, [](auto a, auto b) { return a + b; });
    case PTL_DIFF:
      return modulo(target, initiator, [](auto a, auto b) { return a - b; });
    case PTL_PROD:
      return modulo(target, initiator, [](auto a, auto b) { return a * b; });
    default:
      break;
  }
  if constexpr (!IsComplex<Value>::value) {
    if (operation == PTL_MIN) return initiator < target ? initiator : target;
    if (operation == PTL_MAX) return initiator > target ? initiator : target;
  }
  if constexpr (std::is_integral_v<Value>) {
    const bool both = target != 0 && initiator != 0;
    const bool either = target != 0 || initiator != 0;
    switch (operation) {
      case PTL_LOR:
        return static_cast<Value>(either);
      case PTL_LAND:
        return static_cast<Value>(both);
      case PTL_LXOR:
        return static_cast<Value>(either && !both);
      case PTL_BOR:
        return static_cast<Value>(target | initiator);
      case PTL_BAND:
        return static_cast<Value>(target & initiator);
      case PTL_BXOR:
        return static_cast<Value>(target ^ initiator);
      default:
        break;
    }
  }
  throw std::logic_error("operation");
}

template <typename Value>
bool is_same(const Value& left, const Value& right) {
  return left == right || (left != left && right != right);
}

// spec 3.15.4: the operand is compared with the target, in this order.
template <typename Value>
bool swaps(ptl_op_t operation, Value operand, Value target) {
  if (operation == PTL_SWAP) return true;
  if (operation == PTL_CSWAP) return operand == target;
  if (operation == PTL_CSWAP_NE) return operand != target;
  if constexpr (!IsComplex<Value>::value) {
    if (operation == PTL_CSWAP_LE) return operand <= target;
    if (operation == PTL_CSWAP_LT) return operand < target;
    if (operation == PTL_CSWAP_GE) return operand >= target;
    if (operation == PTL_CSWAP_GT) return operand > target;
  }
  throw std::logic_error("operation");
}

}  // namespace

std::span<const Datatype> all_datatypes() {
  static constexpr Datatype datatypes[] = {
      {PTL_INT8_T, 1, Numbers::integral},
      {PTL_UINT8_T, 1, Numbers::integral},
      {PTL_INT16_T, 2, Numbers::integral},
      {PTL_UINT16_T, 2, Numbers::integral},
      {PTL_INT32_T, 4, Numbers::integral},
      {PTL_UINT32_T, 4, Numbers::integral},
      {PTL_INT64_T, 8, Numbers::integral},
      {PTL_UINT64_T, 8, Numbers::integral},
      {PTL_FLOAT, sizeof(float), Numbers::floating},
      {PTL_FLOAT_COMPLEX, 2 * sizeof(float), Numbers::complex},
      {PTL_DOUBLE, sizeof(double), Numbers::floating},
      {PTL_DOUBLE_COMPLEX, 2 * sizeof(double), Numbers::complex},
      {PTL_LONG_DOUBLE, sizeof(long double), Numbers::floating},
      {PTL_LONG_DOUBLE_COMPLEX, 2 * sizeof(long double), Numbers::complex},
  };
  return datatypes;
}

std::span<const ptl_op_t> all_atomic_operations() {
  static constexpr ptl_op_t operations[] = {
      PTL_MIN,      PTL_MAX,      PTL_SUM,      PTL_DIFF,     PTL_PROD, PTL_LOR,   PTL_LAND,
      PTL_BOR,      PTL_BAND,     PTL_LXOR,     PTL_BXOR,     PTL_SWAP, PTL_CSWAP, PTL_CSWAP_NE,
      PTL_CSWAP_LE, PTL_CSWAP_LT, PTL_CSWAP_GE, PTL_CSWAP_GT, PTL_MSWAP};
  return operations;
}

bool is_legal(AtomicFunction function, ptl_op_t operation, const Datatype& datatype) {
  const bool swap = function == AtomicFunction::swap;
  switch (operation) {
    case PTL_MIN:
    case PTL_MAX:
      return !swap && datatype.numbers != Numbers::complex;
    case PTL_SUM:
    case PTL_DIFF:
    case PTL_PROD:
      return !swap;
    case PTL_LOR:
    case PTL_LAND:
    case PTL_BOR:
    case PTL_BAND:
    case PTL_LXOR:
    case PTL_BXOR:
      return !swap && datatype.numbers == Numbers::integral;
    case PTL_SWAP:
    case PTL_CSWAP:
    case PTL_CSWAP_NE:
      return swap;
    case PTL_CSWAP_LE:
    case PTL_CSWAP_LT:
    case PTL_CSWAP_GE:
    case PTL_CSWAP_GT:
      return swap && datatype.numbers != Numbers::complex;
    case PTL_MSWAP:
      return swap && datatype.numbers == Numbers::integral;
  }
  return false;
}

bool is_single_item(ptl_op_t operation) {
  switch (operation) {
    case PTL_CSWAP:
    case PTL_CSWAP_NE:
    case PTL_CSWAP_LE:
    case PTL_CSWAP_LT:
    case PTL_CSWAP_GE:
    case PTL_CSWAP_GT:
    case PTL_MSWAP:
      return true;
    default:
      return false;
  }
}

void draw_item(std::mt19937& random, const Datatype& datatype, std::byte* item) {
  const bool zero = random() % 4 == 0;
  const auto small = [&] { return (static_cast<int>(random() % 31) - 15) * 0.5; };
  with_type(datatype.type, [&]<typename Value>(Value value) {
    if constexpr (std::is_integral_v<Value>) {
      value = static_cast<Value>((static_cast<uint64_t>(random()) << 32u) | random());
      if (random() % 2 == 0) value = static_cast<Value>(value % 8);
    } else if constexpr (IsComplex<Value>::value) {
      using Part = typename Value::value_type;
      value = Value(static_cast<Part>(small()), static_cast<Part>(small()));
    } else {
      value = static_cast<Value>(small());
    }
    if (zero) value = Value{};
    std::memset(item, 0, sizeof(Value));
    std::memcpy(item, &value, sizeof(Value));
  });
}

void draw_extreme_item(std::mt19937& random, const Datatype& datatype, std::byte* item) {
  draw_item(random, datatype, item);
  if (datatype.numbers == Numbers::complex || random() % 2 == 0) return;
  with_type(datatype.type, [&]<typename Value>(Value zero) {
    if constexpr (!IsComplex<Value>::value) {
      using Limits = std::numeric_limits<Value>;
      const Value infinity = Limits::infinity();
      const Value extremes[] = {Limits::max(),
                                Limits::lowest(),
                                static_cast<Value>(-1),
                                infinity,
                                static_cast<Value>(-infinity),
                                Limits::quiet_NaN(),
                                static_cast<Value>(-zero)};
      std::memcpy(item, &extremes[random() % std::size(extremes)], sizeof(Value));
    }
  });
}

void apply_item(ptl_op_t operation, const Datatype& datatype, const std::byte* target,
                const std::byte* initiator, const std::byte* operand, std::byte* result) {
  with_type(datatype.type, [&]<typename Value>(Value) {
    const auto old = load<Value>(target);
    const auto sent = load<Value>(initiator);
    Value value = old;
    if (operation == PTL_MSWAP) {
      if constexpr (std::is_integral_v<Value>) {
        const auto mask = load<Value>(operand);
        value = static_cast<Value>((old & ~mask) | (sent & mask));
      } else {
        throw std::logic_error("operation");
      }
    } else if (operation == PTL_SWAP || is_single_item(operation)) {
      const Value compared = operation == PTL_SWAP ? old : load<Value>(operand);
      if (swaps(operation, compared, old)) value = sent;
    } else {
      value = combined(operation, old, sent);
    }
    std::memcpy(result, &value, sizeof(Value));
  });
}

bool equal_items(const Datatype& datatype, const std::byte* left, const std::byte* right) {
  bool equal = false;
  with_type(datatype.type,
            [&]<typename Value>(Value) { equal = is_same(load<Value>(left), load<Value>(right)); });
  return equal;
}

}  // namespace lintel::test
