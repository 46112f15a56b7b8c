// Proving to a peer, and letting it prove, that both know the job key (PTL_JOB_KEY). Connection path.
#pragma once

#include <cstdint>
#include <string>

#include "reliable/frame.h"

namespace lintel {

struct CryptoModule;

class JobProof {
 public:
  // With a key loads the module that computes; false: it is not there, `reason` says why. Without a
  // key nothing is proven, and only peers without one are accepted.
  [[nodiscard]] bool open(const std::string& job_key, std::string& reason);
  [[nodiscard]] bool required() const noexcept { return crypto_ != nullptr; }

  // Of the side that opens: over its `connect`, which holds the cookie of the other side.
  void prove_connect(HandshakeBody& body) const noexcept;
  [[nodiscard]] bool check_connect(const HandshakeBody& body) const noexcept;
  // Of the side that is called: over its `accept` and what the first one sent in.
  void prove_accept(HandshakeBody& body, const uint8_t (&nonce)[nonce_bytes],
                    uint64_t number) const noexcept;
  [[nodiscard]] bool check_accept(const HandshakeBody& body, const uint8_t (&nonce)[nonce_bytes],
                                  uint64_t number) const noexcept;

  [[nodiscard]] std::string describe() const;

 private:
  bool compute(const char* role, const HandshakeBody& body, const uint8_t (&nonce)[nonce_bytes],
               uint64_t number, uint8_t (&out)[proof_bytes]) const noexcept;

  std::string key_;
  const CryptoModule* crypto_ = nullptr;
};

}  // namespace lintel
