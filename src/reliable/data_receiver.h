// Numbered frames in order: takes the next one, with those that came early and follow it. Keeps
// early ones, acknowledges duplicates. Message path; the poller, no lock held.
#pragma once

#include "reliable/acknowledger.h"
#include "reliable/message_assembler.h"
#include "reliable/received_acknowledgements.h"

namespace lintel {

class DataReceiver {
 public:
  DataReceiver(const ReliableContext& context, FramePool& early, ConnectionTimers& timers,
               ReceivedAcknowledgements& received, Acknowledger& acknowledger, MessageBatch& batch,
               ConnectionCloser& closer, MessageAssembler& assembler) noexcept
      : context_(context),
        early_(early),
        timers_(timers),
        received_(received),
        acknowledger_(acknowledger),
        batch_(batch),
        closer_(closer),
        assembler_(assembler) {}

  // A data frame whose check is right, on an established connection.
  void take(Connection& connection, const InboundFrame& frame, const FrameHeader& header,
            uint64_t now_ns) noexcept;

  // When to try again, after an expected frame found no room for its message and was kept:
  static constexpr uint64_t room_retry_ns = 1'000'000;
  // The expected frame, if it is kept. False: it is not.
  bool take_kept(Connection& connection, uint64_t now_ns) noexcept;

 private:
  using Taken = MessageAssembler::Taken;
  enum class Handled : uint8_t { yes, not_yet, malformed };

  Handled take_next(Connection& connection, const InboundFrame& frame, const FrameHeader& header,
                    uint64_t now_ns) noexcept;
  void take_rare(Connection& connection, const InboundFrame& frame, const FrameHeader& header,
                 uint64_t now_ns) noexcept;
  void keep(Connection& connection, const InboundFrame& frame, const FrameHeader& header,
            uint64_t now_ns) noexcept;
  Taken take_early(Connection& connection, FrameBuffer* early, uint64_t now_ns) noexcept;
  void go_on_after(Connection& connection, Taken taken, FrameBuffer* early, uint32_t length,
                   uint64_t now_ns) noexcept;

  const ReliableContext context_;
  FramePool& early_;
  ConnectionTimers& timers_;
  ReceivedAcknowledgements& received_;
  Acknowledger& acknowledger_;
  MessageBatch& batch_;
  ConnectionCloser& closer_;
  MessageAssembler& assembler_;
};

}  // namespace lintel
