// Stands in for gasnet/tools/headers.h in the models: types of GASNet without its public headers.
// The mode is PAR.
#pragma once

#include <cstdint>

#include "util/assert.h"

#define GASNET_PAR 1
#define GASNETI_AM_MAX_ARGS 16
#define gasneti_assert(condition) LINTEL_ASSERT(condition)

using gex_Rank_t = uint32_t;
using gex_AM_Index_t = uint8_t;
using gex_AM_Arg_t = int32_t;
using gasnett_tick_t = uint64_t;
