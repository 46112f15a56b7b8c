// Frames of the reliability layer on the wire. All numbers are little endian, the byte order of
// x86-64 and ARM64. Message path, except the handshake.
//
// A frame is used only after check_frame() has found its check right, its connection number names a
// connection, and its source is that of the connection's peer.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "transport/message.h"
#include "transport/packet_link.h"
#include "util/crc32c.h"

namespace lintel {

static_assert(std::endian::native == std::endian::little,
              "frames are written as they lie in memory");

// Bumped whenever a layout or a meaning below changes. Frames of another version are dropped; hello
// and connect are answered by the header of a refuse. For this all versions have in common: the
// size of FrameHeader, the check of the handshake, the places of version, type and connection, the
// numbers of hello, connect and refuse, and that a HandshakeBody begins with the number.
inline constexpr uint8_t frame_version = 9;

enum class FrameType : uint8_t {
  // The handshake, a HandshakeBody each: hello -> challenge -> connect -> accept, or refuse.
  hello = 1,
  challenge,
  connect,
  accept,
  refuse,
  // Frames of a connection.
  data,      // messages, or a fragment of one; numbered, repeated until acknowledged
  datagram,  // a message that may be lost; not numbered
  ack,       // acknowledges only; may carry more words of `selective`
  probe,     // requests an ack, which shows whether the peer runs and what has arrived; of any
             // length, to measure the path
  goodbye,   // the sender closes its end
  // Answer to a frame whose connection does not exist here: a ResetBody.
  reset,
  // Frame of a connection: a PartHeader and a part of a data frame that is longer than the path
  // takes. Number and flags are those of the data frame. Its parts come in order.
  part,
};
inline constexpr unsigned frame_types = 13;

// Bits of FrameHeader::flags.
inline constexpr uint8_t frame_first = 0x01;  // data: begins with the message header
inline constexpr uint8_t frame_last = 0x02;   // data: ends the message
inline constexpr uint8_t frame_whole = frame_first | frame_last;
inline constexpr uint8_t frame_wants_ack = 0x04;  // do not delay the acknowledgement
// data: the check leaves out the payload of this frame, which has a single message or part of one.
// Only on connections on which both sides have agreed to that.
inline constexpr uint8_t frame_unchecked = 0x08;
inline constexpr uint8_t frame_flags_known = 0x0f;

struct FrameHeader {
  // CRC-32C of the body, then of the rest of this header, seeded per connection. Where frames are
  // sealed: the low half of their counter, see frame_seal.h.
  uint32_t check;
  uint8_t version;
  FrameType type;
  uint8_t flags;
  uint8_t ack_delay;      // age of the newest acknowledged frame, in units of 4096 ns
  uint64_t connection;    // the receiver's number of the connection; hello, connect: 0
  uint32_t sequence;      // data: the number of this frame; probe: of it; ack: of the last probe
  uint32_t acknowledged;  // every data frame before this number has arrived
  uint64_t selective;     // bit i: so has the data frame `acknowledged` + 1 + i
};
static_assert(sizeof(FrameHeader) == 32 && offsetof(FrameHeader, version) == 4 &&
              offsetof(FrameHeader, type) == 5 && offsetof(FrameHeader, connection) == 8 &&
              offsetof(FrameHeader, selective) == 24);

// Maximum number of messages in a data frame that is both first and last. Each message begins at a
// multiple of bundle_alignment bytes. The bytes between them are zero, and the last one ends the
// frame.
inline constexpr unsigned most_bundled = 8;
inline constexpr uint32_t bundle_alignment = 8;
[[nodiscard]] constexpr uint32_t bundle_aligned(uint32_t bytes) noexcept {
  return (bytes + bundle_alignment - 1) & ~(bundle_alignment - 1);
}
static_assert(sizeof(FrameHeader) % bundle_alignment == 0);

// Length of the longest eager message. Longer ones travel as data that the target requests.
inline constexpr uint32_t longest_eager_bytes = 8192;
// Bytes in front of the payload of the first (or only) data frame of a message.
inline constexpr uint32_t message_frame_overhead = sizeof(FrameHeader) + sizeof(MessageHeader);

// Maximum number of further words of `selective` behind an ack: bits 64 and up.
inline constexpr unsigned most_selective_words = 32;
inline constexpr uint32_t selective_reach = 64 * (1 + most_selective_words);  // frames

inline constexpr size_t nonce_bytes = 16;
inline constexpr size_t proof_bytes = 32;  // HMAC-SHA-256
inline constexpr size_t share_bytes = 32;  // X25519

enum class RefuseCause : uint8_t {
  none = 0,
  version,   // another version of frames or messages
  job,       // one has a job key and the other none, or they differ
  user,      // another user
  no_room,   // too many connections
  closed,    // neither has a job key, and they are not processes of one user on one node
  security,  // they do not agree on what protects frames
  nid,       // a process of another node has the same nid
};
inline constexpr size_t refuse_causes = 8;

enum class NetworkSecurity : uint8_t { off, authenticated, encrypted };

// Proof that a process requires of its peers.
enum class Admission : uint8_t {
  nothing = 0,      // no proof: any process that claims to be of the same user
  job_key = 1,      // proof of the job key
  node_secret = 2,  // proof of the secret that processes of one user on one node share
};

// Body of all frames of the handshake: an answer is never longer than the frame that it answers.
struct HandshakeBody {
  uint64_t number;       // the sender's number of the connection; challenge, refuse: 0
  uint64_t incarnation;  // incarnation of the sending process, the same over all transports; not 0
  uint8_t nonce[nonce_bytes];
  uint32_t from_nid, from_pid;
  uint32_t to_nid, to_pid;
  uint32_t uid;             // usage id of the sending process (spec 3.8)
  uint32_t mtu;             // largest frame that the sender takes, and the route to the receiver
  uint64_t window_bytes;    // maximum of frames on the way to the sender
  uint32_t first_sequence;  // number of the sender's first data frame
  uint16_t message_version;
  Admission admission;            // proof that the sender requires, and gives
  RefuseCause cause;              // refuse only
  uint64_t cookie;                // challenge: made by the target; connect: the same, given back
  NetworkSecurity security;       // protection of the frames of the connection
  uint8_t leaves_unchecked;       // 1: payloads between the two need no check; else 0
  uint8_t rail_count;             // of `rails`
  uint8_t reserved;               // zero
  uint32_t slot_bytes;            // bytes of the window that each frame takes; 0: see FrameCharge
  uint64_t node;                  // ReliableSettings::node
  RailAddress rails[most_rails];  // ports of the sender, if it has several; the rest is zero
  uint8_t share[share_bytes];     // hello, connect, accept: share for the keys of frames; else zero
  uint8_t proof[proof_bytes];     // connect, accept: proof of the secret; else zero
};
static_assert(sizeof(HandshakeBody) == 288 && offsetof(HandshakeBody, number) == 0 &&
              offsetof(HandshakeBody, cookie) == 72 && offsetof(HandshakeBody, slot_bytes) == 84 &&
              offsetof(HandshakeBody, node) == 88 && offsetof(HandshakeBody, rails) == 96 &&
              offsetof(HandshakeBody, share) == 224 && offsetof(HandshakeBody, proof) == 256);

struct PartHeader {
  uint32_t offset;  // place of this part in the body of the data frame
  uint32_t length;  // length of that body
  uint32_t probe;   // number of the probe that the part is, too; 0: none
};
static_assert(sizeof(PartHeader) == 12);

struct ResetBody {
  uint64_t number;             // connection number of the frame that is answered
  uint32_t nid, pid;           // process that has no such connection
  uint8_t proof[proof_bytes];  // proof of the secret; zero without a secret
};
static_assert(sizeof(ResetBody) == 48);

// Seed of checks of frames that do not belong to a connection yet.
inline constexpr uint32_t handshake_seed = 0x4c4e544cu;

// Returns the seed of checks of frames to the side whose number of the connection is `receiver`.
[[nodiscard]] uint32_t connection_seed(uint64_t receiver, uint64_t sender) noexcept;

// The check of a body; finish_check() adds the header.
[[nodiscard]] inline uint32_t body_check(uint32_t seed, const void* body, size_t bytes) noexcept {
  return crc32c(seed, body, bytes);
}
// The value for FrameHeader::check.
[[nodiscard]] uint32_t finish_check(uint32_t body_check, const FrameHeader& header) noexcept;
// Returns the number of bytes in front of the payload of a frame with frame_unchecked: these are
// checked.
[[nodiscard]] constexpr uint32_t bytes_before_payload(uint8_t flags) noexcept {
  return (flags & frame_first) != 0 ? message_frame_overhead : uint32_t{sizeof(FrameHeader)};
}
[[nodiscard]] bool check_frame(uint32_t seed, const std::byte* frame, size_t bytes) noexcept;

// Returns how far `a` is ahead of `b`. Sequence numbers wrap.
[[nodiscard]] inline int32_t sequence_distance(uint32_t a, uint32_t b) noexcept {
  return static_cast<int32_t>(a - b);
}

}  // namespace lintel
