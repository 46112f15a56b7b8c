/* handlers.cc: a function for each number of arguments. Message path.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "am/handlers.h"

#include <array>
#include <utility>

namespace lintel::gasnet {
namespace {

constexpr size_t kCounts = GASNETI_AM_MAX_ARGS + 1;

template <size_t>
using Argument = gex_AM_Arg_t;

using CallShort = void (*)(gex_AM_Fn_t, gex_Token_t, const gex_AM_Arg_t*);
using CallWithData = void (*)(gex_AM_Fn_t, gex_Token_t, void*, size_t, const gex_AM_Arg_t*);

template <size_t... I>
constexpr CallShort short_for(std::index_sequence<I...>) {
  return
      [](gex_AM_Fn_t handler, gex_Token_t token, [[maybe_unused]] const gex_AM_Arg_t* arguments) {
        reinterpret_cast<void (*)(gex_Token_t, Argument<I>...)>(handler)(token, arguments[I]...);
      };
}
template <size_t... I>
constexpr CallWithData with_data_for(std::index_sequence<I...>) {
  return [](gex_AM_Fn_t handler, gex_Token_t token, void* data, size_t bytes,
            [[maybe_unused]] const gex_AM_Arg_t* arguments) {
    reinterpret_cast<void (*)(gex_Token_t, void*, size_t, Argument<I>...)>(handler)(
        token, data, bytes, arguments[I]...);
  };
}
template <size_t... N>
constexpr std::array<CallShort, kCounts> all_short(std::index_sequence<N...>) {
  return {short_for(std::make_index_sequence<N>())...};
}
template <size_t... N>
constexpr std::array<CallWithData, kCounts> all_with_data(std::index_sequence<N...>) {
  return {with_data_for(std::make_index_sequence<N>())...};
}

constexpr auto kShort = all_short(std::make_index_sequence<kCounts>());
constexpr auto kWithData = all_with_data(std::make_index_sequence<kCounts>());

}  // namespace

void call_short(gex_AM_Fn_t handler, gex_Token_t token, const gex_AM_Arg_t* arguments,
                unsigned int count) {
  kShort[count](handler, token, arguments);
}

void call_with_data(gex_AM_Fn_t handler, gex_Token_t token, void* data, size_t bytes,
                    const gex_AM_Arg_t* arguments, unsigned int count) {
  kWithData[count](handler, token, data, bytes, arguments);
}

}  // namespace lintel::gasnet
