// Frames that only the two ends of a connection can make and, if encrypted, read:
// AES-128-GCM with a key for each direction. The header and, unless encrypted, the body are
// authenticated. A tag behind the frame takes the place of the check, and FrameHeader::check holds
// the low half of the counter that every transmission of a frame has. Message path, except open().
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "crypto/crypto_module.h"
#include "reliable/frame.h"
#include "util/assert.h"

namespace lintel {

// The keys of one direction of a connection. Every so many frames an epoch ends, and the next key
// is made from the last one, which cannot be found from it: no key is used for too long, and no
// counter of frames wraps. Two epochs are at hand. Message path, except open().
class EpochCiphers {
 public:
  EpochCiphers() = default;
  EpochCiphers(const EpochCiphers&) = delete;
  EpochCiphers& operator=(const EpochCiphers&) = delete;
  ~EpochCiphers() {
    for (FrameCipher* cipher : ciphers_)
      if (cipher != nullptr) crypto_->delete_cipher(cipher);
  }

  // Connection path. The key is that of the epoch `first`. False: no memory.
  [[nodiscard]] bool open(const CryptoModule& crypto, bool seals,
                          const uint8_t (&key)[CryptoModule::cipher_key_bytes],
                          uint64_t first) noexcept {
    crypto_ = &crypto;
    seals_ = seals;
    newest_ = first;
    for (FrameCipher*& cipher : ciphers_)
      if ((cipher = crypto.make_cipher(seals)) == nullptr) return false;
    return crypto.set_key(ciphers_[first & 1], key);
  }

  [[nodiscard]] uint64_t newest() const noexcept { return newest_; }
  // Returns nullptr if there is no key of that epoch, or no longer.
  [[nodiscard]] FrameCipher* find(uint64_t epoch) const noexcept {
    const bool at_hand = epoch == newest_ || (epoch + 1 == newest_ && has_two_);
    return at_hand ? ciphers_[epoch & 1] : nullptr;
  }
  // Makes the key of the next epoch; erases that of the epoch before the newest. False: there is no
  // next key, and nothing may be sealed with another one.
  [[nodiscard]] bool advance() noexcept {
    // The next key is the encryption of zeros, with a nonce that no frame has.
    uint8_t nonce[CryptoModule::cipher_nonce_bytes];
    std::memset(nonce, 0xff, sizeof nonce);
    uint8_t key[CryptoModule::cipher_key_bytes] = {};
    const CipherPart part{key, key, sizeof key};
    uint8_t tag[CryptoModule::tag_bytes] = {};
    FrameCipher* const last = ciphers_[newest_ & 1];
    FrameCipher* const next = ciphers_[(newest_ + 1) & 1];
    // A FrameOpener does the same, and gets a wrong tag.
    const bool sealed = crypto_->seal(last, nonce, &part, 1, tag) || !seals_;
    // A key of zeros was not encrypted, and is no secret.
    uint8_t any = 0;
    for (const uint8_t byte : key) any |= byte;
    has_two_ = false;
    const bool is_set = sealed && any != 0 && crypto_->set_key(next, key);
    std::memset(key, 0, sizeof key);
    if (!is_set) return false;
    ++newest_;
    has_two_ = true;
    return true;
  }

 private:
  const CryptoModule* crypto_ = nullptr;
  FrameCipher* ciphers_[2] = {};  // ciphers of two epochs, by their lowest bit
  uint64_t newest_ = 0;
  bool seals_ = false;
  bool has_two_ = false;
};

// Length of the tag behind each sealed frame.
inline constexpr uint32_t tag_bytes = CryptoModule::tag_bytes;

struct SealSettings {
  bool encrypts = false;
  // Binary logarithm of the number of frames that have one key: at least a burst.
  unsigned epoch_bits = 22;
  uint64_t first_counter = 1;
};

// A frame to be sealed: the held bytes, with room for a tag behind them, and a payload elsewhere.
// The encrypted payload is written behind the held bytes, where there is room for it, too.
struct UnsealedFrame {
  std::byte* held;
  uint32_t held_bytes;  // number of held bytes, with the header
  const std::byte* payload = nullptr;
  uint32_t payload_bytes = 0;
};

// The sending end of a direction. The lock of the connection is held.
class FrameSealer {
 public:
  [[nodiscard]] bool open(const CryptoModule& crypto,
                          const uint8_t (&key)[CryptoModule::cipher_key_bytes],
                          const SealSettings& settings) noexcept;
  [[nodiscard]] bool encrypts() const noexcept { return settings_.encrypts; }

  // Writes the header, with its `check`, and the tag; encrypts the held bytes in place if
  // encryption is on. Returns the counter; 0: the payload is not readable memory, or is_broken().
  // Then there is no tag, and the frame must not be sent.
  [[nodiscard]] uint64_t seal(FrameHeader header, const UnsealedFrame& frame) noexcept;
  // Whether libcrypto has failed once: no frame is sealed any more.
  [[nodiscard]] bool is_broken() const noexcept { return is_broken_; }
  // Decrypts a frame of `bytes` bytes that was encrypted with the counter of that low half, whose
  // key must still exist. Afterwards is_broken(), if that failed.
  void undo(uint32_t low, std::byte* frame, uint32_t bytes) noexcept;
  // Whether the next seal() erases a key; whether it is the key of that counter.
  [[nodiscard]] bool forgets_key_next() const noexcept {
    return next_ >> settings_.epoch_bits != ciphers_.newest();
  }
  [[nodiscard]] bool has_oldest_key(uint32_t low) const noexcept {
    return counter_of(low) >> settings_.epoch_bits != ciphers_.newest();
  }

 private:
  [[nodiscard]] uint64_t counter_of(uint32_t low) const noexcept {
    return next_ - (static_cast<uint32_t>(next_) - low);
  }

  const CryptoModule* crypto_ = nullptr;
  SealSettings settings_;
  EpochCiphers ciphers_;
  uint64_t next_ = 1;
  bool is_broken_ = false;
};

// Which frames of a peer have come already, by their counters: a frame that an attacker repeats is
// taken once. Late ones within the window are taken, older ones are not.
class ReplayWindow {
 public:
  static constexpr uint64_t frames = 4096;

  // Nothing has come; counters begin at `first`, which is not 0.
  explicit ReplayWindow(uint64_t first = 1) noexcept : highest_(first - 1) {}

  // The counter whose low half a frame shows: the one closest to the highest that came.
  [[nodiscard]] uint64_t whole(uint32_t low) const noexcept {
    const int64_t ahead = static_cast<int32_t>(low - static_cast<uint32_t>(highest_));
    return ahead < 0 && static_cast<uint64_t>(-ahead) > highest_
               ? 0
               : highest_ + static_cast<uint64_t>(ahead);
  }
  // Before its tag is checked.
  [[nodiscard]] bool may_be_new(uint64_t counter) const noexcept {
    if (counter == 0) return false;
    if (counter > highest_) return true;
    return highest_ - counter < frames && !is_marked(counter);
  }
  // Its tag is right.
  void mark(uint64_t counter) noexcept {
    LINTEL_ASSERT(may_be_new(counter));
    if (counter > highest_) {
      clear(highest_ + 1, counter);
      highest_ = counter;
    }
    words_[word_of(counter)] |= uint64_t{1} << (counter & 63);
  }

 private:
  static constexpr uint64_t word_of(uint64_t counter) noexcept {
    return counter / 64 % (frames / 64);
  }
  [[nodiscard]] bool is_marked(uint64_t counter) const noexcept {
    return (words_[word_of(counter)] >> (counter & 63) & 1) != 0;
  }
  // The bits of counters `from` to `to`, which the window is about to reach.
  void clear(uint64_t from, uint64_t to) noexcept {
    if (to - from >= frames) {
      words_.fill(0);
      return;
    }
    while (from <= to) {
      const bool whole_word = (from & 63) == 0 && to - from >= 63;
      if (whole_word)
        words_[word_of(from)] = 0;
      else
        words_[word_of(from)] &= ~(uint64_t{1} << (from & 63));
      from += whole_word ? 64 : 1;
    }
  }

  uint64_t highest_;
  std::array<uint64_t, frames / 64> words_{};
};

// The receiving end. The poller.
class FrameOpener {
 public:
  enum class Result : uint8_t { good, replayed, damaged };

  [[nodiscard]] bool open(const CryptoModule& crypto,
                          const uint8_t (&key)[CryptoModule::cipher_key_bytes],
                          const SealSettings& settings) noexcept;
  // A frame of `bytes` bytes with its tag, at least a header and a tag. If good, the body is
  // decrypted in place.
  [[nodiscard]] Result open_frame(const FrameHeader& header, std::byte* frame,
                                  uint32_t bytes) noexcept;

 private:
  const CryptoModule* crypto_ = nullptr;
  SealSettings settings_;
  EpochCiphers ciphers_;
  ReplayWindow window_;
};

// Both directions, as one end sees them.
struct SecureChannel {
  FrameSealer send;
  FrameOpener receive;
  uint8_t own_share[CryptoModule::share_bytes] = {};  // share for a repeated accept
};

}  // namespace lintel
