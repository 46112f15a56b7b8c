// The header that every Portals message carries, on every transport.
// Message path. One cache line holds the header and 16 bytes of payload.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "portals4.h"

namespace lintel {

// Bumped whenever MessageHeader or the meaning of one of its fields changes; transports exchange it
// when they connect and refuse peers that speak another version.
inline constexpr uint16_t message_version = 8;

enum class MessageKind : uint8_t {
  none = 0,
  // Requests: translated through the portal table of the target (spec 2.5).
  put,
  get,
  atomic,
  fetch_atomic,
  swap,
  // Responses: bypass translation, name the operation that they answer (spec 4.2.2).
  ack,  // one acknowledgement with its result
  // Operations that succeeded: the cookie in the header, or a payload of uint32_t cookies.
  ack_batch,
  reply,  // answer to get, fetch_atomic, swap; payload: the data unless written directly
  // Bulk data where the peer's memory cannot be reached directly.
  // Asks for `length` bytes from `remote_offset` on: of a put to its initiator, or of a get with
  // get_in_windows to its target. May follow an earlier one, before whose data are sent, at its
  // end.
  data_request,
  data,        // the bytes at `remote_offset` of transfer `cookie`
  connection,  // between two ends of one transport, which never hands it up
  refusal,     // refusal of a request with flag_tell_refusal and without answer: for the log
  // The target holds requests to portal table entry `pt_index`: further ones are to wait. Or,
  // without holds_requests, it holds none any more.
  hold,
  // The sender has freed an allocation that it has named (names_device): `operation` is its kind of
  // memory, `match_bits` its number there.
  freed,
};
inline constexpr unsigned message_kinds = 15;

// Name of a kind, for texts. The kind may be one that came from outside.
[[nodiscard]] constexpr const char* kind_name(MessageKind kind) noexcept {
  constexpr const char* names[message_kinds] = {
      "message", "put",          "get",  "atomic",     "fetch_atomic", "swap", "ack",  "ack_batch",
      "reply",   "data_request", "data", "connection", "refusal",      "hold", "freed"};
  const auto index = static_cast<unsigned>(kind);
  return names[index < message_kinds ? index : 0];
}

// Bits of MessageHeader::flags.
inline constexpr uint8_t flag_interface_mask = 0x03;  // logical interface: see interface_slot()
inline constexpr uint8_t flag_remote_memory = 0x04;   // payload is RemoteMemory[], not data
inline constexpr uint8_t flag_overflow_list = 0x08;   // responses: matched in the overflow list
inline constexpr uint8_t flag_tell_refusal = 0x10;    // requests: the initiator logs refusals
inline constexpr uint8_t flag_unreliable = 0x20;      // requests: PTL_MD_UNRELIABLE
inline constexpr uint8_t flag_last = 0x40;            // data: no more of this transfer follows
inline constexpr uint8_t flag_known = 0x7f;

// Bits of MessageHeader::modes in answers.
inline constexpr uint8_t answer_source_fault = 0x01;  // the initiator's own memory is inaccessible
// Bits of MessageHeader::modes in messages of kind hold.
inline constexpr uint8_t holds_requests = 0x01;
// Bits of MessageHeader::modes in data messages.
inline constexpr uint8_t data_for_reply = 0x01;  // the cookie names an Operation, not a Transfer
inline constexpr uint8_t data_stays = 0x02;      // used by the sender's transport: payload_stays()
inline constexpr uint8_t data_is_staged = 0x04;  // the same: the buffer is reused soon
inline constexpr uint8_t data_pauses = 0x08;     // the same: no other message follows at once
// Bits of MessageHeader::modes in requests, beside those of modes_of().
inline constexpr uint8_t get_in_windows = 0x40;  // a get whose data the initiator asks for
inline constexpr uint8_t names_device = 0x80;    // the payload describes memory of a device

struct MessageHeader {
  uint32_t link_word;  // belongs to the transport while the message is inside it
  MessageKind kind;
  uint8_t flags;
  uint8_t operation;        // requests: ptl_op_t; responses: ptl_ni_fail_t
  uint8_t modes;            // low 4 bits ptl_datatype_t, next 2 bits ptl_ack_req_t
  uint32_t initiator_rank;  // requests from logical interfaces
  uint32_t cookie;          // names the operation (or transfer) at the receiver of the answer
  uint16_t pt_index;
  uint16_t length_bytes[3];  // requested in requests, manipulated in responses: see length()
  uint64_t match_bits;       // data_request, data without payload: the peer's transfer cookie
  uint64_t remote_offset;    // requests: asked for; responses: used
  uint64_t hdr_data;         // data without payload: bytes of the reply

  [[nodiscard]] uint64_t length() const noexcept {  // bytes
    uint64_t word;
    std::memcpy(&word, &pt_index, sizeof word);
    return word >> 16;
  }
  void set_length(uint64_t bytes) noexcept { set_index_and_length(pt_index, bytes); }
  void set_index_and_length(unsigned index, uint64_t bytes) noexcept {
    const uint64_t word = index_and_length(index, bytes);
    std::memcpy(&pt_index, &word, sizeof word);
  }
  // The fields of a whole word, all but the cookie, with one store each: a reader that copies the
  // header word by word gets it from the store buffer. Bytes stored one by one would have to reach
  // the cache first, behind all earlier stores, such as to a cell that another core owns.
  void set(MessageKind of, unsigned flag_bits, unsigned op, unsigned mode_bits, uint32_t rank,
           unsigned index, uint64_t bytes) noexcept {
    const uint64_t first = first_word(of, flag_bits, op, mode_bits);
    const uint64_t second = rank;
    std::memcpy(this, &first, sizeof first);
    std::memcpy(&initiator_rank, &second, sizeof second);
    set_index_and_length(index, bytes);
  }
  // The same but for the first word, which publish() takes.
  void set_rest(uint32_t rank, uint32_t cookie_bits, unsigned index, uint64_t bytes, uint64_t match,
                uint64_t offset, uint64_t data) noexcept {
    const uint64_t second = uint64_t{cookie_bits} << 32 | rank;
    std::memcpy(&initiator_rank, &second, sizeof second);
    set_index_and_length(index, bytes);
    match_bits = match;
    remote_offset = offset;
    hdr_data = data;
  }
  // Words of a header, the first with a link word of 0.
  [[nodiscard]] static constexpr uint64_t first_word(MessageKind of, unsigned flag_bits,
                                                     unsigned op, unsigned mode_bits) noexcept {
    return uint64_t{static_cast<uint8_t>(of)} << 32 | uint64_t{flag_bits} << 40 |
           uint64_t{op} << 48 | uint64_t{mode_bits} << 56;
  }
  [[nodiscard]] static constexpr uint64_t index_and_length(unsigned index,
                                                           uint64_t bytes) noexcept {
    return bytes << 16 | index;
  }
  [[nodiscard]] unsigned interface_slot() const noexcept { return flags & flag_interface_mask; }

  // Requests.
  [[nodiscard]] ptl_datatype_t datatype() const noexcept {
    return static_cast<ptl_datatype_t>(modes & 0xf);
  }
  [[nodiscard]] ptl_op_t atomic_operation() const noexcept {
    return static_cast<ptl_op_t>(operation);
  }
  [[nodiscard]] ptl_ack_req_t requested_ack() const noexcept {
    return static_cast<ptl_ack_req_t>(modes >> 4 & 3);
  }
  [[nodiscard]] bool asks_for_ack() const noexcept { return (modes >> 4 & 3) != PTL_NO_ACK_REQ; }
  [[nodiscard]] static constexpr unsigned modes_of(ptl_datatype_t type,
                                                   ptl_ack_req_t ack) noexcept {
    return static_cast<unsigned>(type) | static_cast<unsigned>(ack) << 4;
  }
  void ask_for_no_ack() noexcept {
    uint32_t word;  // same word as in set()
    std::memcpy(&word, &kind, sizeof word);
    word &= 0x0fffffff;
    std::memcpy(&kind, &word, sizeof word);
  }

  // Responses.
  [[nodiscard]] ptl_ni_fail_t fail() const noexcept {
    return static_cast<ptl_ni_fail_t>(operation);
  }
};
// A header that another process may change: each function reads a word once.
class HeaderWords {
 public:
  explicit HeaderWords(const MessageHeader& header) noexcept
      : words_(reinterpret_cast<uint64_t*>(const_cast<MessageHeader*>(&header))) {}
  [[nodiscard]] uint64_t rank_and_cookie() const noexcept { return word(1); }
  [[nodiscard]] uint64_t index_and_length() const noexcept { return word(2); }
  [[nodiscard]] uint64_t match_bits() const noexcept { return word(3); }
  [[nodiscard]] uint64_t remote_offset() const noexcept { return word(4); }
  [[nodiscard]] uint64_t hdr_data() const noexcept { return word(5); }

 private:
  [[nodiscard]] uint64_t word(unsigned number) const noexcept {
    return std::atomic_ref(words_[number]).load(std::memory_order_relaxed);
  }
  uint64_t* words_;
};

// Fields of the first word of the header of a request.
[[nodiscard]] constexpr unsigned slot_in(uint64_t first_word) noexcept {
  return static_cast<unsigned>(first_word >> 40) & flag_interface_mask;
}
[[nodiscard]] constexpr bool asks_for_ack(uint64_t first_word) noexcept {
  return (first_word >> 60 & 3) != PTL_NO_ACK_REQ;
}
// Whether the request is a put without flags.
[[nodiscard]] constexpr bool is_plain_put(uint64_t first_word) noexcept {
  constexpr uint64_t interface = uint64_t{flag_interface_mask} << 8;
  return (first_word >> 32 & 0xffff & ~interface) == static_cast<uint64_t>(MessageKind::put);
}

// A message as a receiver reads it in place. Two cache lines, the first with header and 16 bytes of
// payload.
inline constexpr uint32_t cell_payload_bytes = 80;
struct alignas(128) MessageCell {
  MessageHeader header;
  std::byte payload[cell_payload_bytes];
};
static_assert(sizeof(MessageCell) == 128 && offsetof(MessageCell, payload) == 48);

// A transport may refer to the payload instead of copying it. The memory of a put lasts until the
// target has answered and so has all of it. The end of a get is not reported before
// Transport::payloads_released() permits it.
[[nodiscard]] inline bool payload_stays(const MessageHeader& header) noexcept {
  return header.kind == MessageKind::data && (header.modes & data_is_staged) == 0 &&
         ((header.modes & data_for_reply) == 0 || (header.modes & data_stays) != 0);
}
// Whether only the end of the peer's own operations depends on a message. A transport may delay
// such a message for a moment, to send it with another one.
[[nodiscard]] inline bool is_acknowledgement(const MessageHeader& header) noexcept {
  return header.kind == MessageKind::ack || header.kind == MessageKind::ack_batch;
}
static_assert(sizeof(MessageHeader) == 48 && alignof(MessageHeader) == 8);
static_assert(offsetof(MessageHeader, cookie) == 12 && offsetof(MessageHeader, match_bits) == 24);
static_assert(offsetof(MessageHeader, kind) == 4 && offsetof(MessageHeader, modes) == 7 &&
              offsetof(MessageHeader, initiator_rank) == 8 &&
              offsetof(MessageHeader, pt_index) == 16 &&
              std::endian::native == std::endian::little);

inline constexpr uint64_t max_message_length = (uint64_t{1} << 48) - 1;

// A range of a peer's memory that a transport with remote access can read or write.
struct RemoteMemory {
  uint64_t address;
  uint64_t length;
  uint64_t key;  // made by expose(): means something to the transport alone
};
static_assert(sizeof(RemoteMemory) == 24);

// A range of this process' memory to send from or to receive into.
struct Piece {
  std::byte* base;
  uint64_t length;
};

// A process by its physical address (spec 3.9.1).
struct ProcessId {
  uint32_t nid;
  uint32_t pid;
  // Compares both fields at once.
  friend constexpr bool operator==(const ProcessId& a, const ProcessId& b) noexcept {
    return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
  }
};

}  // namespace lintel
