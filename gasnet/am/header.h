/* header.h: the format of an active message in the fields of a put. Message path.
 *
 * The match bits contain the handler, the kind and the number of arguments. hdr_data and
 * remote_offset contain the first four arguments, so a Short of up to four has no payload. The
 * payload consists of the rest of the header, padded to 16 bytes, and the data. Its length is a
 * multiple of 16, which keeps the messages of a block aligned.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_AM_HEADER_H
#define LINTEL_GASNET_AM_HEADER_H

#include <portals4.h>

#include <cstdint>
#include <cstring>

#include "tools/headers.h"

namespace lintel::gasnet {

enum class MessageKind : uint8_t {
  kShort,
  kMedium,
  kLong,       /* the data are in the payload */
  kLongPlaced, /* the data have been stored at their destination */
  kCredits,    /* no handler: returns credits */
  kLongApart   /* a separate put brings the data, before or after it */
};

constexpr unsigned int kArgumentsInFields = 4;
constexpr size_t kAlignment = 16;
constexpr size_t kLargestHeader = 64; /* address, length and operation, twelve arguments */
constexpr size_t kLargestData = 8192; /* limit of a message with its data in the payload */
constexpr size_t kSlotBytes = kLargestHeader + kLargestData;
constexpr uint32_t kLargestCredits = 4095; /* maximum of credits that one message returns */

constexpr size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) & ~(kAlignment - 1); }

/** Whether the data are not in the payload, so that the header contains their length. */
constexpr bool has_length(MessageKind kind) {
  return kind == MessageKind::kLongPlaced || kind == MessageKind::kLongApart;
}
constexpr bool is_long(MessageKind kind) { return kind == MessageKind::kLong || has_length(kind); }

/** @return the bytes that precede the data in the payload. */
constexpr size_t header_bytes(MessageKind kind, unsigned int arguments) {
  const size_t fixed = kind == MessageKind::kLong ? 8 : has_length(kind) ? 16 : 0;
  const size_t more = arguments > kArgumentsInFields ? arguments - kArgumentsInFields : 0;
  return aligned(fixed + more * sizeof(gex_AM_Arg_t));
}
static_assert(header_bytes(MessageKind::kLong, GASNETI_AM_MAX_ARGS) <= kLargestHeader);
static_assert(header_bytes(MessageKind::kLongPlaced, GASNETI_AM_MAX_ARGS) <= kLargestHeader);

/** The fields of a message, without its data. */
struct MessageHeader {
  MessageKind kind = MessageKind::kShort;
  gex_AM_Index_t handler = 0;
  unsigned int arguments = 0;
  uint32_t credits = 0;    /* returned to the receiver */
  size_t data_bytes = 0;   /* length of the data of a Medium or Long */
  void* address = nullptr; /* destination of the data of a Long */
  uint64_t operation = 0;  /* number that identifies the data of a kLongApart, for each sender */
};
constexpr unsigned int kLengthBits = 24;
constexpr uint64_t kOperations = uint64_t{1} << (64 - kLengthBits);

/** The fields of a put. */
struct PutFields {
  ptl_match_bits_t match_bits = 0;
  ptl_hdr_data_t hdr_data = 0;
  ptl_size_t remote_offset = 0;
  size_t payload_bytes = 0;
};

/** Writes the fields, and the part of the header that is in the payload. */
inline PutFields encode(const MessageHeader& header, const gex_AM_Arg_t* arguments, char* payload) {
  PutFields fields;
  uint32_t first[kArgumentsInFields] = {};
  const unsigned int in_fields =
      header.arguments < kArgumentsInFields ? header.arguments : kArgumentsInFields;
  for (unsigned int i = 0; i < in_fields; ++i) first[i] = static_cast<uint32_t>(arguments[i]);
  fields.hdr_data = first[0] | uint64_t{first[1]} << 32;
  fields.remote_offset = first[2] | uint64_t{first[3]} << 32;

  char* end = payload;
  if (is_long(header.kind)) {
    std::memcpy(end, &header.address, sizeof header.address);
    end += sizeof header.address;
  }
  if (has_length(header.kind)) {
    const uint64_t word = header.data_bytes | header.operation << kLengthBits;
    std::memcpy(end, &word, sizeof word);
    end += sizeof word;
  }
  if (header.arguments > kArgumentsInFields)
    std::memcpy(end, arguments + kArgumentsInFields,
                (header.arguments - kArgumentsInFields) * sizeof(gex_AM_Arg_t));
  const size_t used = header_bytes(header.kind, header.arguments) +
                      (has_length(header.kind) ? 0 : header.data_bytes);
  fields.payload_bytes = aligned(used);
  fields.match_bits = header.handler | uint64_t{header.arguments} << 8 |
                      uint64_t{static_cast<uint8_t>(header.kind)} << 13 |
                      uint64_t{fields.payload_bytes - used} << 16 | uint64_t{header.credits} << 20;
  return fields;
}

inline MessageKind kind_of(const PutFields& fields) {
  return static_cast<MessageKind>(fields.match_bits >> 13 & 0x7);
}
/** The operation of a message of kind kLongApart. */
inline uint64_t operation_of(const char* payload) {
  uint64_t word = 0;
  std::memcpy(&word, payload + sizeof(void*), sizeof word);
  return word >> kLengthBits;
}

/** Whether the fields of a message that has arrived are consistent, so that decode() reads nothing
 * outside of the message. */
inline bool is_sound(const PutFields& fields) {
  const MessageKind kind = kind_of(fields);
  const auto arguments = static_cast<unsigned int>(fields.match_bits >> 8 & 0x1F);
  if (kind > MessageKind::kLongApart || arguments > GASNETI_AM_MAX_ARGS) return false;
  const size_t in_front = header_bytes(kind, arguments);
  const size_t filled = fields.match_bits >> 16 & 0xF;
  if (kind == MessageKind::kMedium || kind == MessageKind::kLong)
    return fields.payload_bytes % kAlignment == 0 && fields.payload_bytes >= in_front + filled;
  return fields.payload_bytes == in_front && filled == 0;
}

/** Reads what encode() wrote. is_sound() has returned true for the fields.
 * @param arguments  room for GASNETI_AM_MAX_ARGS.
 * @return where the data begin in the payload. */
inline char* decode(const PutFields& fields, char* payload, MessageHeader* header,
                    gex_AM_Arg_t* arguments) {
  header->handler = static_cast<gex_AM_Index_t>(fields.match_bits & 0xFF);
  header->arguments = static_cast<unsigned int>(fields.match_bits >> 8 & 0x1F);
  header->kind = kind_of(fields);
  header->credits = static_cast<uint32_t>(fields.match_bits >> 20 & kLargestCredits);
  const size_t filled = fields.match_bits >> 16 & 0xF;
  const uint64_t words[] = {fields.hdr_data, fields.remote_offset};
  for (unsigned int i = 0; i < kArgumentsInFields; ++i)
    arguments[i] = static_cast<gex_AM_Arg_t>(static_cast<uint32_t>(words[i / 2] >> (i % 2) * 32));
  const char* next = payload;
  if (is_long(header->kind)) {
    std::memcpy(&header->address, next, sizeof header->address);
    next += sizeof header->address;
  }
  const size_t in_front = header_bytes(header->kind, header->arguments);
  header->data_bytes = fields.payload_bytes - filled - in_front;
  if (has_length(header->kind)) {
    uint64_t word = 0;
    std::memcpy(&word, next, sizeof word);
    header->data_bytes = word & ((uint64_t{1} << kLengthBits) - 1);
    header->operation = word >> kLengthBits;
    next += sizeof word;
  }
  if (header->arguments > kArgumentsInFields)
    std::memcpy(arguments + kArgumentsInFields, next,
                (header->arguments - kArgumentsInFields) * sizeof(gex_AM_Arg_t));
  return payload + in_front;
}

}  // namespace lintel::gasnet

#endif  // LINTEL_GASNET_AM_HEADER_H
