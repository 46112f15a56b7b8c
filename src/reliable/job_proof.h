// Both sides of a connection prove that they know the job key (PTL_JOB_KEY). Connection path.
#pragma once

#include <cstdint>
#include <string>

#include "reliable/frame.h"

namespace lintel {

struct CryptoModule;

enum class ProofRole : uint8_t { connect, accept };

class JobProof {
 public:
  // With a key loads the module that computes; false: it is not there, `reason` says why. Without a
  // key nothing is proven, and only peers without one are accepted.
  [[nodiscard]] bool open(const std::string& job_key, std::string& reason);
  [[nodiscard]] bool required() const noexcept { return crypto_ != nullptr; }

  // Proofs over the body and over the opening side's hello: of `connect` by the side that opens, of
  // `accept` by the side that is called. Without a key nothing is written, and every proof is
  // accepted.
  void prove(ProofRole role, HandshakeBody& body, const uint8_t (&nonce)[nonce_bytes],
             uint64_t number) const noexcept;
  [[nodiscard]] bool check(ProofRole role, const HandshakeBody& body,
                           const uint8_t (&nonce)[nonce_bytes], uint64_t number) const noexcept;

  [[nodiscard]] std::string describe() const;

 private:
  bool compute(ProofRole role, const HandshakeBody& body, const uint8_t (&nonce)[nonce_bytes],
               uint64_t number, uint8_t (&out)[proof_bytes]) const noexcept;

  std::string key_;
  const CryptoModule* crypto_ = nullptr;
};

}  // namespace lintel
