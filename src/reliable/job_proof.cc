// Keyed hashes over the frames of a handshake: HMAC-SHA-256 of the crypto module with the job key,
// SipHash with the random secret of the node, which then needs no module. Connection path.
#include "reliable/job_proof.h"

#include <algorithm>
#include <cstring>

#include "crypto/crypto_module.h"
#include "reliable/cookie.h"
#include "util/module.h"

namespace lintel {

namespace {

// Takes the same time wherever the difference lies.
bool equal(const uint8_t* a, const uint8_t* b, size_t bytes) noexcept {
  unsigned difference = 0;
  for (size_t i = 0; i < bytes; ++i) difference |= unsigned{a[i]} ^ unsigned { b[i] };
  return difference == 0;
}

}  // namespace

bool JobProof::open(const std::string& job_key,
                    const std::shared_ptr<const std::string>& node_secret, std::string& reason) {
  if (job_key.empty()) {
    if (node_secret == nullptr) return true;
    admission_ = Admission::node_secret;
    std::memcpy(node_key_, node_secret->data(), std::min(node_secret->size(), sizeof node_key_));
    return true;
  }
  admission_ = Admission::job_key;
  key_ = job_key;
  std::string why;
  crypto_ = static_cast<const CryptoModule*>(load_module("crypto", why));
  if (crypto_ == nullptr) reason = "PTL_JOB_KEY is set, but " + why;
  return crypto_ != nullptr;
}

bool JobProof::compute(ProofRole role, const HandshakeBody& body,
                       const uint8_t (&nonce)[nonce_bytes], uint64_t number,
                       uint8_t (&out)[proof_bytes]) const noexcept {
  struct {
    char role[16];
    uint8_t nonce[nonce_bytes];
    uint64_t number;
    HandshakeBody body;
  } input{};
  static_assert(sizeof input == 16 + 16 + 8 + 112);
  std::strcpy(input.role, role == ProofRole::connect ? "lintel connect" : "lintel accept");
  std::memcpy(input.nonce, nonce, sizeof input.nonce);
  input.number = number;
  input.body = body;
  std::memset(input.body.proof, 0, sizeof input.body.proof);
  if (crypto_ != nullptr)
    return crypto_->hmac_sha256(key_.data(), key_.size(), &input, sizeof input, out);
  // Guesses can be tried only by handshakes: 64 bits are plenty.
  const uint64_t hash = siphash(node_key_, &input, sizeof input);
  std::memset(out, 0, sizeof out);
  std::memcpy(out, &hash, sizeof hash);
  return true;
}

void JobProof::prove(ProofRole role, HandshakeBody& body, const uint8_t (&nonce)[nonce_bytes],
                     uint64_t number) const noexcept {
  if (admission_ != Admission::nothing && !compute(role, body, nonce, number, body.proof))
    std::memset(body.proof, 0, sizeof body.proof);
}

bool JobProof::check(ProofRole role, const HandshakeBody& body, const uint8_t (&nonce)[nonce_bytes],
                     uint64_t number) const noexcept {
  uint8_t expected[proof_bytes];
  return admission_ == Admission::nothing ||
         (compute(role, body, nonce, number, expected) && equal(expected, body.proof, proof_bytes));
}

std::string JobProof::describe() const {
  if (admission_ == Admission::job_key)
    return std::string("peers prove the job key (") + crypto_->description + ")";
  return admission_ == Admission::node_secret
             ? "only processes of this user on this node are admitted (no PTL_JOB_KEY, no "
               "PTL_UDP_OPEN=1)"
             : "peers are NOT authenticated (PTL_JOB_KEY is not set)";
}

}  // namespace lintel
