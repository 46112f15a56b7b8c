// The state of each peer, and the path of messages to it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "transport/process_key.h"
#include "transport/transport.h"
#include "util/lock.h"
#include "util/log.h"
#include "util/node_identity.h"
#include "util/spin_lock.h"

namespace lintel {

struct Channel;
struct PeerRails;

// Path of messages to a peer.
enum class Path : uint8_t {
  datagrams,
  changing,  // the message that names the last datagram is not sent yet
  queue_pair,
  stopping,  // messages that the queue pair did not deliver are to be sent again
};

struct VerbsLink final : Link {
  static constexpr uint8_t pending_offer = 1;
  static constexpr uint8_t pending_decline = 2;
  static constexpr uint8_t pending_change = 4;
  static constexpr uint8_t pending_resume = 8;
  static constexpr uint8_t pending_loss = 16;
  static constexpr uint8_t pending_denial = 32;  // resume of a queue pair that does not exist here
  static constexpr uint8_t pending_rails = 64;

  SpinLock lock;              // taken before the locks of the layer below
  Link* datagrams = nullptr;  // link of the layer below; may be another one after a failure
  Path path LINTEL_GUARDED_BY(lock) = Path::datagrams;
  Channel* channel = nullptr;  // changed by the poller alone, with the lock
  // Requests to the poller: a queue pair is wanted; the reason for stopping it.
  bool wants_channel LINTEL_GUARDED_BY(lock) = false;
  bool wants_rails LINTEL_GUARDED_BY(lock) = false;
  const char* stop_because LINTEL_GUARDED_BY(lock) = nullptr;
  uint32_t messages_until_request LINTEL_GUARDED_BY(lock) = 0;
  uint32_t corks LINTEL_GUARDED_BY(lock) = 0;  // cork() without uncork()
  // Slots, in order, through SendSlots::next().
  uint32_t resend_head LINTEL_GUARDED_BY(lock) = UINT32_MAX;
  uint32_t resend_tail LINTEL_GUARDED_BY(lock) = UINT32_MAX;
  // Number of the first one among the messages of the channel.
  uint64_t resend_first LINTEL_GUARDED_BY(lock) = 0;

  // --- the poller
  uint8_t pending = 0;  // messages of kind connection that found no room yet
  bool listed = false;  // the link is one of the unfinished links
  uint32_t declined_number = 0;
  uint32_t denied_number = 0;  // own number of the denied queue pair, according to the peer
  uint32_t denied_peer_number = 0;
  uint32_t failures = 0;  // queue pairs in sequence that failed before they carried anything
  // The number of the further queue pair that this link is about; 0: the one for messages.
  uint8_t rail = 0;
  std::atomic<uint8_t> peer_ports{0};  // further ports of the peer; 0: it has told of none
  // Further queue pairs to the peer, once there is any. Lasts as long as the link.
  std::atomic<PeerRails*> rails{nullptr};
  std::atomic<uint32_t> next_request_ms{0};  // for such queue pairs, modulo 2^32; 0: any time
  std::atomic<uint32_t> rail_requests{0};    // since the last notice of the peer
};

// The links to all peers, found by process. Connection path; any thread. Links last as long as this
// object.
class VerbsLinks {
 public:
  explicit VerbsLinks(uint32_t max_data_bytes) noexcept : max_data_bytes_(max_data_bytes) {}

  // Made if there is none. Throws when there is no memory.
  [[nodiscard]] VerbsLink& find(ProcessId peer) {
    const LockGuard guard(mutex_);
    std::unique_ptr<VerbsLink>& place = links_[key_of(peer)];
    if (place == nullptr) {
      place = std::make_unique<VerbsLink>();
      place->peer = peer;
      place->max_data_bytes = max_data_bytes_;
    }
    return *place;
  }

  template <typename Visit>
  void for_each(const Visit& visit) noexcept {
    const LockGuard guard(mutex_);
    for (const auto& [key, link] : links_) visit(*link);
  }

 private:
  const uint32_t max_data_bytes_;
  Mutex mutex_;
  std::unordered_map<uint64_t, std::unique_ptr<VerbsLink>> links_ LINTEL_GUARDED_BY(mutex_);
};

// Links about whose queue pairs something is left to do in the next rounds. The poller.
class UnfinishedLinks {
 public:
  [[nodiscard]] bool is_empty() const noexcept { return links_.empty(); }

  void add(VerbsLink& link) noexcept {
    if (link.listed) return;
    try {
      links_.push_back(&link);
      link.listed = true;
    } catch (...) {
      log_message(LogLevel::error, "verbs: no memory to go on with %s",
                  ProcessText(link.peer.nid, link.peer.pid).c_str());
    }
  }

  // Calls serve() with each; those for which it is true are finished.
  template <typename Serve>
  void serve(const Serve& serve) noexcept {
    for (size_t i = 0; i < links_.size();) {
      VerbsLink& link = *links_[i];
      if (serve(link)) {
        link.listed = false;
        links_[i] = links_.back();
        links_.pop_back();
      } else {
        ++i;
      }
    }
  }

 private:
  std::vector<VerbsLink*> links_;
};

}  // namespace lintel
