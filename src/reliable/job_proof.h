// Both sides of a connection prove that they know the same secret: the job key (PTL_JOB_KEY), or
// without one the secret of this user on this node. Connection path.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "reliable/reliable_settings.h"

namespace lintel {

struct CryptoModule;

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

  [[nodiscard]] std::string describe() const;

 private:
  [[nodiscard]] bool stretch(std::string& reason);
  bool authenticate(const void* data, size_t bytes, uint8_t (&out)[proof_bytes]) const noexcept;
  bool compute(ProofRole role, const HandshakeBody& body, const uint8_t (&nonce)[nonce_bytes],
               uint64_t number, uint8_t (&out)[proof_bytes]) const noexcept;
  bool compute(const ResetBody& body, uint8_t (&out)[proof_bytes]) const noexcept;

  Admission admission_ = Admission::nothing;
  std::string secret_;
  uint64_t node_key_[2] = {};
  const CryptoModule* crypto_ = nullptr;
};

}  // namespace lintel
