// The five data movement calls, each bound to its buffers and target. Message path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <portals4.h>

#include <cstdint>

#include "ptl_perf/errors.h"

namespace lintel::perf {

/** Offset of the slot to use next, the same at both ends; stays 0 when one buffer is reused. */
class SlotOffset {
 public:
  SlotOffset(std::uint64_t stride_bytes, std::uint64_t slots)
      : stride_bytes_(slots > 1 ? stride_bytes : 0), end_bytes_(stride_bytes * slots) {}

  std::uint64_t take() {
    const std::uint64_t now = offset_bytes_;
    offset_bytes_ += stride_bytes_;
    if (offset_bytes_ == end_bytes_) offset_bytes_ = 0;
    return now;
  }

 private:
  std::uint64_t offset_bytes_ = 0;
  std::uint64_t stride_bytes_;
  std::uint64_t end_bytes_;
};

/** Target of operations. */
struct Destination {
  ptl_process_t process{};
  ptl_pt_index_t index = 0;
  ptl_match_bits_t match_bits = 0;
};

struct PutOperation {
  ptl_handle_md_t source;
  ptl_size_t length_bytes;
  ptl_ack_req_t ack;
  Destination to;
  SlotOffset offset;

  void issue() {
    const std::uint64_t at = offset.take();
    require(
        PtlPut(source, at, length_bytes, ack, to.process, to.index, to.match_bits, at, nullptr, 0),
        "PtlPut");
  }
};

struct GetOperation {
  ptl_handle_md_t sink;
  ptl_size_t length_bytes;
  Destination from;
  SlotOffset offset;

  void issue() {
    const std::uint64_t at = offset.take();
    require(PtlGet(sink, at, length_bytes, from.process, from.index, from.match_bits, at, nullptr),
            "PtlGet");
  }
};

struct AtomicOperation {
  ptl_handle_md_t source;
  ptl_size_t length_bytes;
  ptl_ack_req_t ack;
  Destination to;
  SlotOffset offset;
  ptl_op_t operation;
  ptl_datatype_t datatype;

  void issue() {
    const std::uint64_t at = offset.take();
    require(PtlAtomic(source, at, length_bytes, ack, to.process, to.index, to.match_bits, at,
                      nullptr, 0, operation, datatype),
            "PtlAtomic");
  }
};

struct FetchAtomicOperation {
  ptl_handle_md_t sink;
  ptl_handle_md_t source;
  ptl_size_t length_bytes;
  Destination to;
  SlotOffset offset;
  ptl_op_t operation;
  ptl_datatype_t datatype;

  void issue() {
    const std::uint64_t at = offset.take();
    require(PtlFetchAtomic(sink, at, source, at, length_bytes, to.process, to.index, to.match_bits,
                           at, nullptr, 0, operation, datatype),
            "PtlFetchAtomic");
  }
};

struct SwapOperation {
  ptl_handle_md_t sink;
  ptl_handle_md_t source;
  ptl_size_t length_bytes;
  Destination to;
  SlotOffset offset;
  const void* operand;  // read by the call itself
  ptl_op_t operation;
  ptl_datatype_t datatype;

  void issue() {
    const std::uint64_t at = offset.take();
    require(PtlSwap(sink, at, source, at, length_bytes, to.process, to.index, to.match_bits, at,
                    nullptr, 0, operand, operation, datatype),
            "PtlSwap");
  }
};

}  // namespace lintel::perf
