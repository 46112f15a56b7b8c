// The keys of one connection, by HKDF-SHA-256 from two inputs: the X25519 result of two ephemeral
// key pairs, and the secret that both sides have proven. A secret that leaks later does not decrypt
// recorded frames. Connection path.
#pragma once

#include <cstdint>
#include <span>

#include "crypto/crypto_module.h"
#include "reliable/frame.h"

namespace lintel {

// Data of both sides that are known once they have proven the secret. Keys depend on all of them.
struct SessionTranscript {
  uint8_t share_of_opener[CryptoModule::share_bytes];
  uint8_t share_of_called[CryptoModule::share_bytes];
  uint8_t nonce[nonce_bytes];  // nonce of the opener
  uint64_t number_of_opener;
  uint64_t number_of_called;
  uint32_t opener_nid, opener_pid;
  uint32_t called_nid, called_pid;
  uint64_t security;
};
static_assert(sizeof(SessionTranscript) == 64 + nonce_bytes + 40);

class SessionKeys {
 public:
  using Key = uint8_t[CryptoModule::cipher_key_bytes];

  SessionKeys() = default;
  SessionKeys(const SessionKeys&) = delete;
  SessionKeys& operator=(const SessionKeys&) = delete;
  ~SessionKeys();

  // Makes an own key pair. False: libcrypto failed.
  [[nodiscard]] bool make_share(const CryptoModule& crypto) noexcept;
  [[nodiscard]] const uint8_t (&share() const noexcept)[CryptoModule::share_bytes] {
    return share_;
  }
  // Derives the keys with the share of the peer. False: the share is invalid, or libcrypto failed.
  [[nodiscard]] bool derive(const CryptoModule& crypto, std::span<const uint8_t> secret,
                            const uint8_t (&share_of_peer)[CryptoModule::share_bytes],
                            const SessionTranscript& transcript) noexcept;
  [[nodiscard]] const Key& to_called() const noexcept { return to_called_; }
  [[nodiscard]] const Key& to_opener() const noexcept { return to_opener_; }

 private:
  uint8_t secret_[CryptoModule::share_bytes] = {};
  uint8_t share_[CryptoModule::share_bytes] = {};
  Key to_called_ = {};
  Key to_opener_ = {};
};

}  // namespace lintel
