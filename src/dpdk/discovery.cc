// Questions, answers and what is known. Connection path.
#include "dpdk/discovery.h"

#include <new>

#include "transport/process_key.h"
#include "util/crc32c.h"
#include "util/lock.h"

namespace lintel {

namespace {

constexpr uint32_t check_seed = 0x4c4e4449u;

uint32_t check_of(const DiscoveryBody& body) noexcept {
  return crc32c(check_seed, &body.version, sizeof body - offsetof(DiscoveryBody, version));
}

}  // namespace

DiscoveryBody Discovery::make_body(DiscoveryType type, ProcessId process,
                                   uint64_t number) const noexcept {
  DiscoveryBody body{};
  body.version = discovery_version;
  body.type = type;
  body.nid = process.nid;
  body.pid = process.pid;
  body.number = number;
  body.instance = instance_;
  body.check = check_of(body);
  return body;
}

// SplitMix64 (Steele, Lea, Flood) from an unpredictable start: a node that did not get a question
// cannot answer it.
uint64_t Discovery::random() noexcept {
  uint64_t z = random_state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return z != 0 ? z : 1;
}

// Mutex held. nullptr: no memory, or too many are known.
Discovery::Entry* Discovery::entry_for(ProcessId peer, uint64_t now_ns) noexcept {
  try {
    if (entries_.size() >= most_known && entries_.find(key_of(peer)) == entries_.end()) {
      std::erase_if(entries_, [now_ns](const auto& item) {
        return !item.second.asking && now_ns - item.second.answered_ns > fresh_ns;
      });
      if (entries_.size() >= most_known) return nullptr;
    }
    return &entries_[key_of(peer)];
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void Discovery::ask(Entry& entry, ProcessId peer, uint64_t now_ns,
                    DiscoveryMessage& message) noexcept {
  if (entry.asking && now_ns - entry.asked_ns < question_gap_ns) return;
  if (!entry.asking) {
    entry.asking = true;
    entry.contested = false;
    entry.number = random();
  }
  entry.asked_ns = now_ns;
  message = {true, broadcast_mac, make_body(DiscoveryType::who_has, peer, entry.number)};
}

ResolveStatus Discovery::resolve(ProcessId peer, uint64_t now_ns, MacAddress& mac,
                                 DiscoveryMessage& message) noexcept {
  const LockGuard guard(mutex_);
  Entry* const entry = entry_for(peer, now_ns);
  if (entry == nullptr) return ResolveStatus::unreachable;
  if (entry->answered && !entry->contested && !entry->doubtful &&
      now_ns - entry->answered_ns <= fresh_ns) {
    mac = entry->macs[0];
    return ResolveStatus::resolved;
  }
  ask(*entry, peer, now_ns, message);
  return ResolveStatus::pending;
}

bool Discovery::adopt(ProcessId peer, const MacAddress& mac, uint64_t now_ns,
                      DiscoveryMessage& message) noexcept {
  const LockGuard guard(mutex_);
  Entry* const entry = entry_for(peer, now_ns);
  if (entry == nullptr) return false;
  if (entry->answered && entry->has(mac) && !entry->contested) return true;
  if (entry->answered) {
    // The process has another address here. It may have moved: a question is sent, and the new
    // address is rejected until there is an answer.
    ask(*entry, peer, now_ns, message);
    return false;
  }
  entry->mac_count = 0;
  entry->add(mac);
  entry->answered = true;
  entry->asking = false;
  entry->answered_ns = now_ns;
  return true;
}

DiscoveryMessage Discovery::claim() noexcept {
  const LockGuard guard(mutex_);
  if (claim_number_ == 0) claim_number_ = random();
  return {true, broadcast_mac, make_body(DiscoveryType::claim, own_, claim_number_)};
}

void Discovery::settle() noexcept {
  const LockGuard guard(mutex_);
  settled_ = true;
}

bool Discovery::disputed() noexcept {
  const LockGuard guard(mutex_);
  return disputed_;
}

size_t Discovery::known() noexcept {
  const LockGuard guard(mutex_);
  return entries_.size();
}

bool Discovery::handle(const MacAddress& from, const std::byte* data, uint32_t length,
                       uint64_t now_ns, DiscoveryMessage& answer) noexcept {
  DiscoveryBody body;
  if (length != sizeof body) return false;
  std::memcpy(&body, data, sizeof body);
  if (body.check != check_of(body) || body.version != discovery_version || body.reserved != 0)
    return false;
  if (body.instance == instance_) return true;  // of another port of this process
  const bool about_us = body.nid == own_.nid && body.pid == own_.pid;
  const LockGuard guard(mutex_);
  switch (body.type) {
    case DiscoveryType::who_has:
      if (about_us && settled_)
        answer = {true, from, make_body(DiscoveryType::is_here, own_, body.number)};
      return true;
    case DiscoveryType::claim:
      if (about_us) {
        handle_claim(from, body, answer);
      } else if (const auto known = entries_.find(key_of({body.nid, body.pid}));
                 known != entries_.end() && known->second.instance != body.instance) {
        // Perhaps it starts again elsewhere.
        known->second.doubtful = true;
      }
      return true;
    case DiscoveryType::is_here:
      handle_answer(from, body, now_ns);
      return true;
  }
  return false;
}

// Mutex held. Of two that claim at once, the one with the lower MAC address goes on.
void Discovery::handle_claim(const MacAddress& from, const DiscoveryBody& body,
                             DiscoveryMessage& answer) noexcept {
  if (settled_ || (claim_number_ != 0 && own_mac_ < from)) {
    answer = {true, from, make_body(DiscoveryType::is_here, own_, body.number)};
  } else if (claim_number_ != 0) {
    disputed_ = true;
  }
}

// Mutex held.
void Discovery::handle_answer(const MacAddress& from, const DiscoveryBody& body,
                              uint64_t now_ns) noexcept {
  if (body.nid == own_.nid && body.pid == own_.pid) {
    if (body.number == claim_number_ && claim_number_ != 0) disputed_ = true;
    return;
  }
  const auto found = entries_.find(key_of({body.nid, body.pid}));
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  if (entry.number != body.number || entry.number == 0) return;  // it answers no open question
  if (!entry.asking) {
    if (entry.instance == body.instance)
      entry.add(from);
    else
      entry.contested = true;
    return;
  }
  entry.mac_count = 0;
  entry.add(from);
  entry.instance = body.instance;
  entry.answered = true;
  entry.asking = false;
  entry.doubtful = false;
  entry.answered_ns = now_ns;
}

}  // namespace lintel
