// HMAC-SHA-256 with the job key over the frames of a handshake, by the crypto module. Connection
// path.
#include "reliable/job_proof.h"

#include <cstring>

#include "crypto/crypto_module.h"
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

bool JobProof::open(const std::string& job_key, std::string& reason) {
  if (job_key.empty()) return true;
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
  return crypto_->hmac_sha256(key_.data(), key_.size(), &input, sizeof input, out);
}

void JobProof::prove(ProofRole role, HandshakeBody& body, const uint8_t (&nonce)[nonce_bytes],
                     uint64_t number) const noexcept {
  if (required() && !compute(role, body, nonce, number, body.proof))
    std::memset(body.proof, 0, sizeof body.proof);
}

bool JobProof::check(ProofRole role, const HandshakeBody& body, const uint8_t (&nonce)[nonce_bytes],
                     uint64_t number) const noexcept {
  uint8_t expected[proof_bytes];
  return !required() ||
         (compute(role, body, nonce, number, expected) && equal(expected, body.proof, proof_bytes));
}

std::string JobProof::describe() const {
  return required() ? std::string("peers prove the job key (") + crypto_->description + ")"
                    : "peers are NOT authenticated (PTL_JOB_KEY is not set)";
}

}  // namespace lintel
