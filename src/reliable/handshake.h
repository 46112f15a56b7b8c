// Opens connections: hello, challenge, connect, accept. Answers frames of unknown connections with
// resets. Connection path; the poller, except start().
//
// The called side keeps nothing before `connect` returns its cookie, so frames with invented
// sources cost it a hash. All four frames have the same length, so no answer is longer than its
// question.
#pragma once

#include "reliable/connection_closer.h"
#include "reliable/connection_timers.h"
#include "reliable/cookie.h"
#include "reliable/job_proof.h"
#include "transport/incarnation.h"
#include "util/log.h"

namespace lintel {

class Handshake {
 public:
  Handshake(const ReliableContext& context, ConnectionCloser& closer) noexcept
      : context_(context),
        incarnation_(context.settings.incarnation != 0 ? context.settings.incarnation
                                                       : new_incarnation()),
        closer_(closer),
        limit_(context.link.properties().host_mask) {}

  // Set-up path. False: the job key cannot be used, `reason` says why.
  [[nodiscard]] bool open(std::string& reason) { return proof_.open(context_.settings, reason); }
  [[nodiscard]] std::string describe() const;

  // Any thread. The connection is idle.
  void start(Connection& connection, uint64_t now_ns) noexcept LINTEL_REQUIRES(connection.lock);
  // Called when the timer of an opening connection is due. Returns the time of
  // the next attempt, or sets `failure` to the reason why there is none.
  uint64_t go_on(Connection& connection, bool unreachable, uint64_t now_ns,
                 Link::Failure& failure) noexcept LINTEL_REQUIRES(connection.lock);

  // Frames that arrived: with a HandshakeBody, and resets.
  void take(const InboundFrame& frame, const FrameHeader& header, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(polling);
  void take_reset(const InboundFrame& frame) noexcept LINTEL_REQUIRES(polling);
  void take_of_other_version(const InboundFrame& frame, const FrameHeader& header,
                             uint64_t now_ns) noexcept LINTEL_REQUIRES(polling);
  // Reports to a peer of an earlier process with this address that it is gone. The frame is not
  // longer than the one that it answers.
  void send_reset(const InboundFrame& frame, const FrameHeader& header, uint64_t now_ns) noexcept;

 private:
  // False: it gets no answer, which was counted.
  [[nodiscard]] bool may_answer(const InboundFrame& frame, uint64_t now_ns) noexcept;
  [[nodiscard]] bool needs_no_check(ProcessId peer) const noexcept;
  [[nodiscard]] uint32_t taken_bytes(const Connection& connection) const noexcept;
  HandshakeBody own_body(ProcessId to) const noexcept;
  void send(FrameType type, const LinkAddress& to, uint64_t receiver_number,
            const HandshakeBody& body) noexcept;
  void call_elsewhere(const Connection& connection, const HandshakeBody& body) noexcept
      LINTEL_REQUIRES(connection.lock);
  void attempt(Connection& connection, uint64_t now_ns) noexcept LINTEL_REQUIRES(connection.lock);
  Connection* awaiting(const InboundFrame& frame, const FrameHeader& header) const noexcept;
  void take_challenge(Connection& connection, const HandshakeBody& body, uint64_t now_ns) noexcept;
  RefuseCause take_accept(Connection& connection, const HandshakeBody& body,
                          uint64_t now_ns) noexcept;
  void take_refusal(Connection& connection, RefuseCause cause, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(polling);
  void take_hello(const InboundFrame& frame, const HandshakeBody& body, uint64_t now_ns) noexcept;
  void take_connect(const InboundFrame& frame, const HandshakeBody& body, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(polling);
  RefuseCause judge(const HandshakeBody& body, bool proven) const noexcept;
  void refuse(const InboundFrame& frame, const HandshakeBody& body, RefuseCause cause,
              uint64_t now_ns) noexcept;
  uint64_t last_number_of(ProcessId peer) const;
  Connection* place_for(ProcessId peer, uint64_t now_ns) noexcept LINTEL_REQUIRES(polling);
  void send_accept(const Connection& connection, const LinkAddress& to,
                   const HandshakeBody& body) noexcept;
  void establish(Connection& connection, const HandshakeBody& body,
                 std::unique_ptr<SecureChannel> secure, uint64_t now_ns) noexcept
      LINTEL_REQUIRES(connection.lock);
  [[nodiscard]] bool seals() const noexcept {
    return context_.settings.security != NetworkSecurity::off;
  }

  const ReliableContext context_;
  const uint64_t incarnation_;
  ConnectionCloser& closer_;
  AnswerLimit limit_;
  CookieMaker cookies_;
  SaidRecently said_versions_;
  SaidRecently said_refusals_;  // refusals in the log, by cause and node
  JobProof proof_;
};

}  // namespace lintel
