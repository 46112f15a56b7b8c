// Sealing and opening frames.
#include "reliable/frame_seal.h"

#include <cstring>

#include "util/guarded_memory.h"

namespace lintel {

namespace {

struct Nonce {
  uint8_t bytes[CryptoModule::cipher_nonce_bytes] = {};
  explicit Nonce(uint64_t counter) noexcept {
    std::memcpy(bytes + sizeof bytes - sizeof counter, &counter, sizeof counter);
  }
};

struct Sealing {
  const CryptoModule* crypto;
  FrameCipher* cipher;
  const uint8_t* nonce;
  const CipherPart* parts;
  unsigned count;
  uint8_t* tag;
  bool sealed = false;
};

void run_sealing(void* argument) {
  auto& sealing = *static_cast<Sealing*>(argument);
  sealing.sealed = sealing.crypto->seal(sealing.cipher, sealing.nonce, sealing.parts, sealing.count,
                                        sealing.tag);
}

}  // namespace

bool FrameSealer::open(const CryptoModule& crypto,
                       const uint8_t (&key)[CryptoModule::cipher_key_bytes],
                       const SealSettings& settings) noexcept {
  crypto_ = &crypto;
  settings_ = settings;
  next_ = settings.first_counter;
  return ciphers_.open(crypto, true, key, next_ >> settings.epoch_bits);
}

uint64_t FrameSealer::seal(FrameHeader header, const UnsealedFrame& frame) noexcept {
  if (is_broken_) [[unlikely]]
    return 0;
  const uint64_t counter = next_++;
  if (counter >> settings_.epoch_bits != ciphers_.newest() && !ciphers_.advance()) {
    is_broken_ = true;
    return 0;
  }
  header.check = static_cast<uint32_t>(counter);
  std::memcpy(frame.held, &header, sizeof header);
  const Nonce nonce(counter);
  std::byte* const end = frame.held + frame.held_bytes;
  std::byte* const body = encrypts() ? frame.held + sizeof header : end;
  CipherPart parts[3] = {{frame.held, nullptr, static_cast<size_t>(body - frame.held)}};
  unsigned count = 1;
  if (body != end) parts[count++] = {body, body, static_cast<size_t>(end - body)};
  if (frame.payload != nullptr)
    parts[count++] = {frame.payload, encrypts() ? end : nullptr, frame.payload_bytes};
  std::byte* const tag = frame.payload != nullptr && encrypts() ? end + frame.payload_bytes : end;
  Sealing sealing{crypto_,     ciphers_.find(counter >> settings_.epoch_bits),
                  nonce.bytes, parts,
                  count,       reinterpret_cast<uint8_t*>(tag)};
  if (frame.payload == nullptr) {
    run_sealing(&sealing);
  } else if (!guarded_call(run_sealing, &sealing)) {
    if (encrypts()) undo(header.check, frame.held, frame.held_bytes);
    return 0;
  }
  is_broken_ |= !sealing.sealed;
  return is_broken_ ? 0 : counter;
}

void FrameSealer::undo(uint32_t low, std::byte* frame, uint32_t bytes) noexcept {
  if (bytes == sizeof(FrameHeader)) return;
  const uint64_t counter = counter_of(low);
  FrameCipher* const cipher = ciphers_.find(counter >> settings_.epoch_bits);
  const Nonce nonce(counter);
  std::byte* const body = frame + sizeof(FrameHeader);
  const CipherPart part{body, body, bytes - sizeof(FrameHeader)};
  uint8_t tag[CryptoModule::tag_bytes];
  // GCM encrypts by exclusive or with what depends on key and nonce alone.
  is_broken_ |= !crypto_->seal(cipher, nonce.bytes, &part, 1, tag);
}

bool FrameOpener::open(const CryptoModule& crypto,
                       const uint8_t (&key)[CryptoModule::cipher_key_bytes],
                       const SealSettings& settings) noexcept {
  crypto_ = &crypto;
  settings_ = settings;
  window_ = ReplayWindow(settings.first_counter);
  return ciphers_.open(crypto, false, key, settings.first_counter >> settings.epoch_bits) &&
         ciphers_.advance();
}

FrameOpener::Result FrameOpener::open_frame(const FrameHeader& header, std::byte* frame,
                                            uint32_t bytes) noexcept {
  const uint64_t counter = window_.whole(header.check);
  if (!window_.may_be_new(counter)) return Result::replayed;
  const uint64_t epoch = counter >> settings_.epoch_bits;
  FrameCipher* const cipher = ciphers_.find(epoch);
  if (cipher == nullptr) return Result::damaged;
  const Nonce nonce(counter);
  const uint32_t held_bytes = bytes - tag_bytes;
  const bool decrypts = settings_.encrypts && held_bytes != sizeof header;
  std::byte* const body = frame + sizeof header;
  const CipherPart parts[2] = {{frame, nullptr, decrypts ? sizeof header : held_bytes},
                               {body, body, held_bytes - sizeof header}};
  if (!crypto_->open(cipher, nonce.bytes, parts, decrypts ? 2 : 1,
                     reinterpret_cast<const uint8_t*>(frame + held_bytes)))
    return Result::damaged;
  window_.mark(counter);
  // In the middle of the newest epoch no frame of the epoch before it is on the way any more.
  // Without a next key, frames of the next epoch count as damaged.
  const uint64_t half = uint64_t{1} << (settings_.epoch_bits - 1);
  if (epoch == ciphers_.newest() && (counter & half) != 0) static_cast<void>(ciphers_.advance());
  return Result::good;
}

}  // namespace lintel
