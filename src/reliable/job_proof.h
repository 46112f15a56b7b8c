// Both sides of a connection prove that they know the same secret: the job key (PTL_JOB_KEY), or
// without one the secret of this user on this node. Connection path.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "reliable/frame.h"

namespace lintel {

struct CryptoModule;

enum class ProofRole : uint8_t { connect, accept };

class JobProof {
 public:
  // With a key loads the module that computes; false: it is not there, `reason` says why. The
  // secret of the node counts only without a key. With neither nothing is proven, and only peers
  // without any are accepted.
  [[nodiscard]] bool open(const std::string& job_key,
                          const std::shared_ptr<const std::string>& node_secret,
                          std::string& reason);
  [[nodiscard]] Admission admission() const noexcept { return admission_; }

  // Proofs over the body and over the opening side's hello: of `connect` by the side that opens, of
  // `accept` by the side that is called. Without a secret nothing is written, and every proof is
  // accepted.
  void prove(ProofRole role, HandshakeBody& body, const uint8_t (&nonce)[nonce_bytes],
             uint64_t number) const noexcept;
  [[nodiscard]] bool check(ProofRole role, const HandshakeBody& body,
                           const uint8_t (&nonce)[nonce_bytes], uint64_t number) const noexcept;

  [[nodiscard]] std::string describe() const;

 private:
  bool compute(ProofRole role, const HandshakeBody& body, const uint8_t (&nonce)[nonce_bytes],
               uint64_t number, uint8_t (&out)[proof_bytes]) const noexcept;

  Admission admission_ = Admission::nothing;
  std::string key_;
  uint64_t node_key_[2] = {};
  const CryptoModule* crypto_ = nullptr;
};

}  // namespace lintel
