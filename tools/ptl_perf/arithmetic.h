// The atomic operations that the tests offer, and what each shall do to memory. Set-up path;
// message path only with --verify.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <portals4.h>

#include <cstdint>
#include <memory>
#include <string>

#include "ptl_perf/verifier.h"

namespace lintel::perf {

/** Names as on the command line, for which options.cc has checked that they go together. */
ptl_op_t operation_of(const std::string& name);
ptl_datatype_t datatype_of(const std::string& name);
std::uint64_t datatype_bytes(ptl_datatype_t datatype);

/** Whether PtlSwap takes one item only for this operation (spec 3.15.7). */
bool single_item(ptl_op_t operation);

/** The operand of a PtlSwap; the verifier changes it from one operation to the next. */
struct Operand {
  alignas(16) std::byte bytes[16] = {};
};

/** Follows what operations do to `target` and compares. `source` holds what this process sends.
 *  Both processes of a pair may send (a ping-pong); each knows what the other one's operands are
 *  by their number. */
struct AtomicModel {
  ptl_op_t operation;
  ptl_datatype_t datatype;
  const Region& source;
  const Region& target;   // exposed here
  const Region* fetched;  // initiator of fetching operations: their result; else nullptr
  Operand* operand;       // operand of PtlSwap; else nullptr
};

std::unique_ptr<Verifier> make_atomic_verifier(const AtomicModel& model);

}  // namespace lintel::perf
