// Both sides of a connection prove that they know the same secret: the job key (PTL_JOB_KEY), or
// without one the secret of this user on this node. From the secret, and from keys of the moment,
// follow the keys of the connection. Connection path.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "crypto/crypto_module.h"
#include "reliable/frame_seal.h"
#include "reliable/reliable_settings.h"

namespace lintel {

class SessionKeys;

enum class ProofRole : uint8_t { connect, accept };

class JobProof {
 public:
  // Loads the module that computes, if it is needed; false: it is not there, `reason` says why. The
  // secret of the node counts only without a key. With neither nothing is proven, and only peers
  // without any are accepted.
  [[nodiscard]] bool open(const ReliableSettings& settings, std::string& reason);
  [[nodiscard]] Admission admission() const noexcept { return admission_; }
  // Returns nullptr if no module is needed.
  [[nodiscard]] const CryptoModule* crypto() const noexcept { return crypto_; }
  // Short keys are stretched, see job_proof.cc.
  [[nodiscard]] std::span<const uint8_t> secret() const noexcept {
    return {reinterpret_cast<const uint8_t*>(secret_.data()), secret_.size()};
  }

  // Proofs over the body and over the opening side's hello: of `connect` by the side that opens, of
  // `accept` by the side that is called. Without a secret nothing is written, and every proof is
  // accepted.
  void prove(ProofRole role, HandshakeBody& body, const uint8_t (&nonce)[nonce_bytes],
             uint64_t number) const noexcept;
  [[nodiscard]] bool check(ProofRole role, const HandshakeBody& body,
                           const uint8_t (&nonce)[nonce_bytes], uint64_t number) const noexcept;
  // A reset names a connection that its sender does not have, by a secret number: the
  // proof is of no use for another one.
  void prove(ResetBody& body) const noexcept;
  [[nodiscard]] bool check(const ResetBody& body) const noexcept;

  // Makes what seals the frames of a connection from the bodies of `connect` and `accept`, of which
  // one is that of this process. nullptr: no memory, or an invalid share.
  [[nodiscard]] std::unique_ptr<SecureChannel> make_channel(SessionKeys& keys,
                                                            const HandshakeBody& opener,
                                                            const HandshakeBody& called,
                                                            bool is_opener) const noexcept;

  [[nodiscard]] std::string describe() const;

 private:
  [[nodiscard]] bool stretch(std::string& reason);
  bool authenticate(const void* data, size_t bytes, uint8_t (&out)[proof_bytes]) const noexcept;
  bool compute(ProofRole role, const HandshakeBody& body, const uint8_t (&nonce)[nonce_bytes],
               uint64_t number, uint8_t (&out)[proof_bytes]) const noexcept;
  bool compute(const ResetBody& body, uint8_t (&out)[proof_bytes]) const noexcept;

  Admission admission_ = Admission::nothing;
  NetworkSecurity security_ = NetworkSecurity::off;
  SealSettings seal_;
  std::string secret_;
  uint64_t node_key_[2] = {};
  const CryptoModule* crypto_ = nullptr;
};

// Mutual knowledge of both sides once they have proven the secret. Keys depend on all of it.
struct SessionTranscript {
  uint8_t share_of_opener[CryptoModule::share_bytes];
  uint8_t share_of_called[CryptoModule::share_bytes];
  uint8_t nonce[nonce_bytes];  // of the opener
  uint64_t number_of_opener;
  uint64_t number_of_called;
  uint32_t opener_nid, opener_pid;
  uint32_t called_nid, called_pid;
  uint64_t security;
};
static_assert(sizeof(SessionTranscript) == 64 + nonce_bytes + 40);

// The keys of one connection, by HKDF-SHA-256 from two inputs: the X25519 result of two ephemeral
// key pairs, and the secret that both sides have proven. A secret that leaks later does not decrypt
// recorded frames.
class SessionKeys {
 public:
  using Key = uint8_t[CryptoModule::cipher_key_bytes];

  SessionKeys() = default;
  SessionKeys(const SessionKeys&) = delete;
  SessionKeys& operator=(const SessionKeys&) = delete;
  ~SessionKeys();

  // An own key pair. False: libcrypto failed.
  [[nodiscard]] bool make_share(const CryptoModule& crypto) noexcept;
  [[nodiscard]] const uint8_t (&share() const noexcept)[CryptoModule::share_bytes] {
    return share_;
  }
  // With the share of the peer. False: that is none, or libcrypto failed.
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
