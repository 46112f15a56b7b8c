#include "verbs/agreement.h"

#include <cstring>

#include "util/lock.h"

namespace lintel {

void AgreementSender::schedule(VerbsLink& link, uint8_t what) noexcept {
  link.pending |= what;
  unfinished_.add(link);
}

void AgreementSender::decline(VerbsLink& link, uint32_t offered_number) noexcept {
  link.declined_number = offered_number;
  schedule(link, VerbsLink::pending_decline);
}

void AgreementSender::deny(VerbsLink& link, uint32_t own_number, uint32_t peer_number) noexcept {
  link.denied_number = own_number;
  link.denied_peer_number = peer_number;
  schedule(link, VerbsLink::pending_denial);
}

void AgreementSender::tell_of_rails(VerbsLink& link, uint8_t ports) noexcept {
  further_ports_ = ports;
  schedule(link, VerbsLink::pending_rails);
}

void AgreementSender::begin_change(VerbsLink& link) noexcept {
  {
    const LockGuard guard(link.lock);
    link.path = Path::changing;
  }
  schedule(link, VerbsLink::pending_change);
}

bool AgreementSender::send_pending(VerbsLink& link) noexcept {
  return send(link, VerbsLink::pending_decline, Agreement::decline) &&
         send(link, VerbsLink::pending_offer, Agreement::offer) &&
         send(link, VerbsLink::pending_change, Agreement::change) &&
         send(link, VerbsLink::pending_resume, Agreement::resume) &&
         send(link, VerbsLink::pending_denial, Agreement::resume) &&
         send(link, VerbsLink::pending_loss, Agreement::loss) &&
         send(link, VerbsLink::pending_rails, Agreement::rails);
}

// True: not pending (any more), be it that the peer is gone.
bool AgreementSender::send(VerbsLink& link, uint8_t what, Agreement kind) noexcept {
  if ((link.pending & what) == 0) return true;
  AgreementBody body{};
  body.version = agreement_version;
  if (const Channel* channel = link.channel; channel != nullptr) {
    body.sender_number = channel->number;
    body.receiver_number = channel->peer.number;
    body.channel_index = channel->index;
    body.received = channel->received.count;
    if (channel->queue_pair != nullptr) {
      const QueuePairAddress own = channel->queue_pair->address();
      std::memcpy(body.gid, &own.gid, sizeof body.gid);
      body.lid = own.lid;
      body.mtu = own.mtu;
      body.reads = own.reads;
      body.first_packet = own.first_packet;
    }
  }
  if (what == VerbsLink::pending_decline) body.receiver_number = link.declined_number;
  if (what == VerbsLink::pending_denial) {
    body.sender_number = link.denied_number;
    body.receiver_number = link.denied_peer_number;
    body.received = 0;
  }
  body.eager_bytes = eager_bytes_;
  body.rail = what == VerbsLink::pending_rails ? further_ports_ : link.rail;
  MessageHeader header{};
  header.kind = MessageKind::connection;
  header.operation = static_cast<uint8_t>(kind);
  header.set_length(sizeof body);
  const Piece piece{reinterpret_cast<std::byte*>(&body), sizeof body};
  const SendStatus status = datagrams_.send(*link.datagrams, header, &piece, 1);
  if (status == SendStatus::queue_full || status == SendStatus::connecting) return false;
  link.pending &= static_cast<uint8_t>(~what);
  if (what == VerbsLink::pending_change && status == SendStatus::sent) {
    const LockGuard guard(link.lock);
    if (link.path == Path::changing) link.path = Path::queue_pair;
  }
  return true;
}

}  // namespace lintel
