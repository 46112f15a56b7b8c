// State of messages that have not ended yet: operations at their initiator, bulk transfers and
// queued answers at the target. Message path; all three live in arenas and are linked intrusively.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/events/event_queue.h"
#include "core/objects/memory_descriptor.h"
#include "core/request.h"
#include "portals4.h"
#include "transport/message.h"
#include "transport/transport.h"
#include "util/loan.h"

namespace lintel {

class NetworkInterface;
struct ListEntry;
struct Peer;
struct PortalEntry;
class StagedStream;
struct UnexpectedHeader;

// Something that waits in a peer's send queue because the transport had no room.
struct QueuedSend {
  enum class Kind : uint8_t {
    request,        // Operation: its first message
    request_data,   // Operation: data messages that the target requested
    transfer_data,  // Transfer: data messages to the initiator of a get
    answer,         // Answer: an acknowledgement or a small reply
    mark,           // no message: shows that requests are held, see SendQueues
  };
  explicit QueuedSend(Kind what) noexcept : kind(what) {}
  QueuedSend* next_queued = nullptr;
  Kind kind;
};

// Result of a reply whose data are still being copied.
struct ReplyPlace {
  uint64_t length = 0;
  uint64_t offset = 0;
  ptl_list_t list = PTL_PRIORITY_LIST;
};

// An operation that this process initiated and that has not ended. Found by its cookie.
struct alignas(64) Operation : QueuedSend, Request {
  Operation() noexcept : QueuedSend(Kind::request) {}
  // Whether its first message has gone out, since no answer counts before. Written under the send
  // lock; `sent` is final.
  enum class Stage : uint8_t {
    sending,  // send() is running: an answer may arrive before the sender continues
    queued,   // the operation waits in the peer's send queue
    sent,
  };
  std::atomic<Stage> stage{Stage::sending};
  std::atomic<uint32_t> next_free{0};
  std::atomic<Peer*> peer{nullptr};  // nullptr while the object is free
  // Part of the cookie. An answer may be looked up while a sender that could not send changes it.
  std::atomic<uint8_t> generation{0};
  bool send_due = false;     // PTL_EVENT_SEND has not been reported
  bool answer_due = false;   // an acknowledgement or reply is to be reported
  bool direct = false;       // the target fetches the payload, or requests it in data messages
  bool copied = false;       // the payload waits in a VolatileCopy
  bool streaming = false;    // data messages are being sent
  bool data_queued = false;  // the operation waits in the send queue for data messages
  bool ending = false;       // only copies to the device are awaited; no answer counts any more
  NetworkInterface* interface = nullptr;
  // Data messages: those that the target of a long put requested, or, of a get with
  // get_in_windows, those that this process has requested up to stream_position.
  uint64_t stream_position = 0;
  uint64_t stream_end = 0;
  uint32_t stream_cookie = 0;
  StagedStream* staged = nullptr;  // moves the data, if the memory is that of a device
  ReplyPlace reply;
  ptl_ni_fail_t fault = PTL_NI_OK;  // why the first message could not be sent
  // The memory that the target may access. Set before the message that exposes it is sent.
  std::atomic<uint32_t> exposure{Exposure::none};
};

// Payload of a queued operation whose buffer the application may already reuse (PTL_MD_VOLATILE).
// Each operation has one, at its own index.
struct VolatileCopy {
  std::byte bytes[2048 + largest_operand_bytes];
};

// The entry that a message matched, and the memory of it.
struct TransferPlace {
  NetworkInterface* interface = nullptr;
  PortalEntry* portal = nullptr;
  ListEntry* entry = nullptr;
  UnexpectedHeader* unexpected = nullptr;
  uint64_t offset = 0;
  EventReservation reserved;
};

// Bytes of a message, counted from its start.
struct TransferProgress {
  uint64_t moved = 0;
  uint64_t in_flight = 0;  // of a remote access that has been started and has not ended
  // End of what was requested: of a put by this process, of a get by the initiator.
  uint64_t requested = 0;
};

// Whether the transport refers to the memory of the entry until its mark (payload_mark()) is
// reached.
struct AwaitedRelease {
  bool awaited = false;
  uint32_t mark = 0;
};

// The initiator's memory.
inline constexpr unsigned transfer_remote_pieces = 32;
struct RemotePieces {
  unsigned count = 0;
  RemoteMemory pieces[transfer_remote_pieces];
};

// A message that moves more data than fits one message, at the target.
struct alignas(64) Transfer : QueuedSend {
  Transfer() noexcept : QueuedSend(Kind::transfer_data) {}
  std::atomic<uint32_t> next_free{0};
  std::atomic<uint8_t> generation{0};
  bool writes_peer = false;          // a get: data flow to the initiator
  bool streaming = false;            // the transfer is in the send queue
  bool ended = false;                // all is moved or has failed; only the reporting is left
  bool by_messages = false;          // the peer's memory cannot be reached directly
  bool source_fault = false;         // the initiator's memory is not accessible
  bool active = false;               // the transfer is in the active list
  bool ending = false;               // only copies to the device are awaited
  bool peer_gone = false;            // the initiator is not answered
  std::atomic<Peer*> peer{nullptr};  // nullptr while the object is free
  TransferPlace place;
  MessageHeader header{};
  uint64_t mlength = 0;
  TransferProgress progress;
  StagedStream* staged = nullptr;  // moves the data, if the entry is in memory of a device
  ptl_ni_fail_t fail = PTL_NI_OK;
  AwaitedRelease release;
  Transfer* next_active = nullptr;  // link of the active list or of Peer::unreleased_head
  RemotePieces remote;
};

// Largest payload that travels with a reply. Longer gets are written into the initiator's memory,
// or answered in data messages. Not less than the max_eager_bytes of any transport.
inline constexpr size_t largest_reply_bytes = 8192;

// An answer that waits for room. Most are acknowledgements: there may be a million of them, so they
// do not have the room of a reply.
inline constexpr size_t short_answer_bytes = 80;
struct Answer : QueuedSend {
  Answer() noexcept : QueuedSend(Kind::answer) {}
  std::atomic<uint32_t> next_free{0};
  MessageHeader header{};
  uint32_t payload_length = 0;
  uint32_t long_payload = 0;  // index of the LongPayload, if the payload does not fit here
  std::byte payload[short_answer_bytes];
};
struct LongPayload {
  // Does not clear the bytes: a short payload touches one page or two.
  LongPayload() noexcept {}
  std::atomic<uint32_t> next_free{0};
  std::byte bytes[largest_reply_bytes];
};

// Memory for a moment that is too much for the stack of a caller: threads of run-time systems often
// have 16 KiB. A thread has one block at a time (Loan).
struct ScratchBlock {
  std::atomic<uint32_t> next_free{0};
  std::byte bytes[16384];
};
static_assert(largest_reply_bytes <= sizeof ScratchBlock::bytes);
using ScratchPool = Arena<ScratchBlock>;
inline constexpr uint32_t most_scratch_blocks = 256;  // threads that send or deliver at once

// ---- Cookies name operations and transfers that wait for an answer of a peer: an index with a
// generation, so that an old cookie names nothing.

inline constexpr uint32_t cookie_index_bits = 24;

[[nodiscard]] constexpr uint32_t make_cookie(uint32_t index, uint8_t generation) noexcept {
  return index | uint32_t{generation} << cookie_index_bits;
}
[[nodiscard]] constexpr uint32_t cookie_index(uint32_t cookie) noexcept {
  return cookie & ((1u << cookie_index_bits) - 1);
}
[[nodiscard]] constexpr uint8_t cookie_generation(uint32_t cookie) noexcept {
  return static_cast<uint8_t>(cookie >> cookie_index_bits);
}

// Objects of a pool that cookies name: with a `generation`, and with a `peer` unless they are free.
template <typename Object>
[[nodiscard]] uint32_t cookie_in(const Arena<Object>& pool, const Object& object) noexcept {
  return make_cookie(pool.index_of(object), object.generation.load(std::memory_order_relaxed));
}
// Returns nullptr if the cookie names no object in use.
template <typename Object>
[[nodiscard, gnu::always_inline]] inline Object* find_by_cookie(const Arena<Object>& pool,
                                                                uint32_t cookie) noexcept {
  const uint32_t index = cookie_index(cookie);
  if (!pool.contains(index)) return nullptr;
  Object& object = pool.at(index);
  return object.peer.load(std::memory_order_acquire) != nullptr &&
                 object.generation.load(std::memory_order_relaxed) == cookie_generation(cookie)
             ? &object
             : nullptr;
}
// Calls action(Object&) for all objects in use.
template <typename Object, typename Action>
void for_each_live(const Arena<Object>& pool, Action&& action) noexcept {
  for (uint32_t i = 0; i < pool.high_water(); ++i) {
    Object& object = pool.at(i);
    if (object.peer.load(std::memory_order_acquire) != nullptr) action(object);
  }
}

}  // namespace lintel
