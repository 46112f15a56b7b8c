// The keys of one direction of a connection. Every so many frames an epoch ends, and the next key
// is made from the last one, which cannot be found from it: no key is used for too long, and no
// counter of frames wraps. Two epochs are at hand. Message path, except open().
#pragma once

#include <cstdint>
#include <cstring>

#include "crypto/crypto_module.h"

namespace lintel {

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
    newest_ = first;
    for (FrameCipher*& cipher : ciphers_)
      if ((cipher = crypto.make_cipher(seals)) == nullptr) return false;
    return crypto.set_key(ciphers_[first & 1], key);
  }

  [[nodiscard]] uint64_t newest() const noexcept { return newest_; }
  // nullptr: it is not at hand.
  [[nodiscard]] FrameCipher* find(uint64_t epoch) const noexcept {
    const bool at_hand = epoch == newest_ || (epoch + 1 == newest_ && has_two_);
    return at_hand ? ciphers_[epoch & 1] : nullptr;
  }
  // Makes the key of the next epoch; forgets that of the epoch before the newest.
  [[nodiscard]] bool advance() noexcept {
    // What the key makes of zeros under a nonce that no frame has.
    uint8_t nonce[CryptoModule::cipher_nonce_bytes];
    std::memset(nonce, 0xff, sizeof nonce);
    uint8_t key[CryptoModule::cipher_key_bytes] = {};
    const CipherPart part{key, key, sizeof key};
    uint8_t tag[CryptoModule::tag_bytes] = {};
    FrameCipher* const last = ciphers_[newest_ & 1];
    FrameCipher* const next = ciphers_[(newest_ + 1) & 1];
    // One that opens does the same, and finds that the tag is wrong.
    static_cast<void>(crypto_->seal(last, nonce, &part, 1, tag));
    const bool is_set = crypto_->set_key(next, key);
    std::memset(key, 0, sizeof key);
    ++newest_;
    has_two_ = true;
    return is_set;
  }

 private:
  const CryptoModule* crypto_ = nullptr;
  FrameCipher* ciphers_[2] = {};  // of an epoch by its lowest bit
  uint64_t newest_ = 0;
  bool has_two_ = false;
};

}  // namespace lintel
