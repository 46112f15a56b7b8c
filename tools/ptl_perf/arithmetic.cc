// The atomic operations that the tests offer, and what each shall do to memory. Set-up path;
// message path only with --verify.
// SPDX-License-Identifier: BSD-3-Clause
#include "ptl_perf/arithmetic.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <type_traits>
#include <vector>

#include "ptl_perf/errors.h"

namespace lintel::perf {
namespace {

// Returns the result that Portals must compute of a target value, a value sent, and for swaps an
// operand (table 3-4).
template <class T>
T apply(ptl_op_t operation, T target, T sent, T operand) {
  switch (operation) {
    case PTL_MIN:
      return std::min(target, sent);
    case PTL_MAX:
      return std::max(target, sent);
    case PTL_SUM:
    case PTL_DIFF:
    case PTL_PROD:
      if constexpr (std::is_integral_v<T>) {
        using U = std::make_unsigned_t<T>;  // wraps around instead of overflowing
        const U t = static_cast<U>(target);
        const U s = static_cast<U>(sent);
        return static_cast<T>(operation == PTL_SUM ? t + s : operation == PTL_DIFF ? t - s : t * s);
      } else {
        return operation == PTL_SUM ? target + sent
                                    : (operation == PTL_DIFF ? target - sent : target * sent);
      }
    case PTL_SWAP:
      return sent;
    case PTL_CSWAP:
      return operand == target ? sent : target;
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    switch (operation) {
      case PTL_LOR:
        return target || sent;
      case PTL_LAND:
        return target && sent;
      case PTL_LXOR:
        return !target != !sent;
      case PTL_BOR:
        return target | sent;
      case PTL_BAND:
        return target & sent;
      case PTL_BXOR:
        return target ^ sent;
      case PTL_MSWAP:
        return (target & ~operand) | (sent & operand);
      default:
        break;
    }
  }
  throw Failure(ExitCode::failed, "no model of this atomic operation");
}

template <class T>
class TypedVerifier final : public Verifier {
 public:
  explicit TypedVerifier(const AtomicModel& model)
      : model_(model),
        items_(model.target.size_bytes() / sizeof(T)),
        expected_(items_ * model.target.slots()) {
    for (std::uint64_t slot = 0; slot < model_.target.slots(); ++slot) {
      for (std::uint64_t item = 0; item < items_; ++item) {
        const T start = static_cast<T>(item % 7 + 1);
        expected_[slot * items_ + item] = start;
        put(model_.target, slot, item, start);
      }
    }
  }

  void prepare(std::uint64_t number) override {
    for (std::uint64_t item = 0; item < items_; ++item) {
      put(model_.source, number, item, sent(number, item));
    }
    if (model_.fetched) {
      std::memset(model_.fetched->slot(number), 0x5a, model_.fetched->size_bytes());
    }
    if (model_.operand) {
      const T value = operand_value(number);
      std::memcpy(model_.operand->bytes, &value, sizeof value);
    }
  }

  void inspect_reply(std::uint64_t number) override {
    if (!model_.fetched) return;
    for (std::uint64_t item = 0; item < items_; ++item) {
      compare(get(*model_.fetched, number, item), model_value(number, item), number, item,
              "the value that an atomic operation fetched");
    }
    check_guard(*model_.fetched, number, "the buffer of a fetching operation");
    advance(number);
  }

  void inspect_arrivals(std::uint64_t first, std::uint64_t count) override {
    for (std::uint64_t number = first; number < first + count; ++number) advance(number);
    const std::uint64_t slots = std::min(count, model_.target.slots());
    for (std::uint64_t slot = 0; slot < slots; ++slot) {
      for (std::uint64_t item = 0; item < items_; ++item) {
        compare(get(model_.target, first + slot, item), model_value(first + slot, item),
                first + count - 1, item, "the target of an atomic operation");
      }
      check_guard(model_.target, first + slot, "the target of an atomic operation");
    }
  }

 private:
  static T get(const Region& region, std::uint64_t slot, std::uint64_t item) {
    T value;
    std::memcpy(&value, region.slot(slot) + item * sizeof(T), sizeof value);
    return value;
  }

  static void put(const Region& region, std::uint64_t slot, std::uint64_t item, T value) {
    std::memcpy(region.slot(slot) + item * sizeof(T), &value, sizeof value);
  }

  // Small numbers: sums of floating-point numbers stay exact for millions of operations.
  static T sent(std::uint64_t number, std::uint64_t item) {
    return static_cast<T>((number * 5 + item * 3) % 4);
  }

  // Every third compare-and-swap shall fail.
  T operand_value(std::uint64_t number) const {
    const T current = expected_[(number % model_.target.slots()) * items_];
    if (model_.operation == PTL_CSWAP) {
      return number % 3 == 2 ? static_cast<T>(current + 1) : current;
    }
    return static_cast<T>(0x0f0f0f0f);
  }

  T model_value(std::uint64_t number, std::uint64_t item) const {
    return expected_[(number % model_.target.slots()) * items_ + item];
  }

  void advance(std::uint64_t number) {
    const T operand = operand_value(number);
    T* values = &expected_[(number % model_.target.slots()) * items_];
    for (std::uint64_t item = 0; item < items_; ++item) {
      values[item] = apply<T>(model_.operation, values[item], sent(number, item), operand);
    }
  }

  static void compare(T found, T expected, std::uint64_t number, std::uint64_t item,
                      const char* what) {
    if (std::memcmp(&found, &expected, sizeof found) == 0) return;
    throw Failure(ExitCode::wrong_data,
                  std::string("wrong data in ") + what + ": item " + std::to_string(item) +
                      " after operation " + std::to_string(number) + " is " +
                      std::to_string(found) + ", not " + std::to_string(expected));
  }

  AtomicModel model_;
  std::uint64_t items_;
  std::vector<T> expected_;
};

}  // namespace

ptl_op_t operation_of(const std::string& name) {
  static const std::map<std::string, ptl_op_t> operations{
      {"min", PTL_MIN},     {"max", PTL_MAX},     {"sum", PTL_SUM},   {"diff", PTL_DIFF},
      {"prod", PTL_PROD},   {"lor", PTL_LOR},     {"land", PTL_LAND}, {"bor", PTL_BOR},
      {"band", PTL_BAND},   {"lxor", PTL_LXOR},   {"bxor", PTL_BXOR}, {"swap", PTL_SWAP},
      {"cswap", PTL_CSWAP}, {"mswap", PTL_MSWAP},
  };
  return operations.at(name);
}

ptl_datatype_t datatype_of(const std::string& name) {
  if (name == "int32") return PTL_INT32_T;
  if (name == "float") return PTL_FLOAT;
  if (name == "double") return PTL_DOUBLE;
  return PTL_INT64_T;
}

std::uint64_t datatype_bytes(ptl_datatype_t datatype) {
  return datatype == PTL_INT32_T || datatype == PTL_FLOAT ? 4 : 8;
}

bool single_item(ptl_op_t operation) { return operation > PTL_SWAP; }

std::unique_ptr<Verifier> make_atomic_verifier(const AtomicModel& model) {
  switch (model.datatype) {
    case PTL_INT32_T:
      return std::make_unique<TypedVerifier<std::int32_t>>(model);
    case PTL_FLOAT:
      return std::make_unique<TypedVerifier<float>>(model);
    case PTL_DOUBLE:
      return std::make_unique<TypedVerifier<double>>(model);
    default:
      return std::make_unique<TypedVerifier<std::int64_t>>(model);
  }
}

}  // namespace lintel::perf
