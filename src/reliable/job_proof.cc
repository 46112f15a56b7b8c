// Keyed hashes over the frames of a handshake: HMAC-SHA-256 of the crypto module with the job key,
// SipHash with the random secret of the node, which needs no module. Connection path.
#include "reliable/job_proof.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

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

constexpr size_t hash_bytes = CryptoModule::hash_bytes;

// One block of HKDF-Expand.
bool expand(const CryptoModule& crypto, const uint8_t (&root)[hash_bytes],
            const SessionTranscript& transcript, char direction, SessionKeys::Key& out) noexcept {
  struct {
    char label[15];
    char direction;
    SessionTranscript transcript;
    uint8_t block;
  } info{};
  std::memcpy(info.label, "lintel session", sizeof info.label);
  info.direction = direction;
  info.transcript = transcript;
  info.block = 1;
  uint8_t hash[hash_bytes];
  if (!crypto.hmac_sha256(root, sizeof root, &info, offsetof(decltype(info), block) + 1, hash))
    return false;
  std::memcpy(out, hash, sizeof out);
  explicit_bzero(hash, sizeof hash);
  return true;
}

}  // namespace

bool JobProof::open(const ReliableSettings& settings, std::string& reason) {
  security_ = settings.security;
  seal_ = {security_ == NetworkSecurity::encrypted, settings.key_epoch_bits,
           settings.first_counter};
  const bool has_key = !settings.job_key.empty();
  const bool seals = settings.security != NetworkSecurity::off;
  if (has_key) {
    admission_ = Admission::job_key;
    secret_ = settings.job_key;
  } else if (settings.node_secret != nullptr) {
    admission_ = Admission::node_secret;
    secret_ = *settings.node_secret;
    std::memcpy(node_key_, secret_.data(), std::min(secret_.size(), sizeof node_key_));
  } else if (seals) {
    reason = "PTL_NETWORK_SECURITY needs a job key (PTL_JOB_KEY)";
    return false;
  }
  if (!has_key && !seals) return true;
  std::string why;
  crypto_ = static_cast<const CryptoModule*>(load_module("crypto", why));
  if (crypto_ == nullptr)
    reason = (has_key ? "PTL_JOB_KEY is set, but " : "PTL_NETWORK_SECURITY is set, but ") + why;
  return crypto_ != nullptr && (!has_key || stretch(reason));
}

// A process that is called learns proofs of the caller, and can try keys against them. Keys that
// people think of are short; each try has to take long.
bool JobProof::stretch(std::string& reason) {
  constexpr size_t long_key = 32;  // bytes: those of launchers and of `openssl rand` are longer
  if (secret_.size() >= long_key) return true;
  std::string stretched(CryptoModule::hash_bytes, '\0');
  if (!crypto_->stretch(secret_.data(), secret_.size(),
                        reinterpret_cast<uint8_t*>(stretched.data()))) {
    reason = "the job key cannot be stretched (scrypt of libcrypto, 16 MiB)";
    return false;
  }
  secret_ = std::move(stretched);
  return true;
}

bool JobProof::authenticate(const void* data, size_t bytes,
                            uint8_t (&out)[proof_bytes]) const noexcept {
  if (crypto_ != nullptr)
    return crypto_->hmac_sha256(secret_.data(), secret_.size(), data, bytes, out);
  // Guesses can be tried only by handshakes: 64 bits are plenty.
  const uint64_t hash = siphash(node_key_, data, bytes);
  std::memset(out, 0, sizeof out);
  std::memcpy(out, &hash, sizeof hash);
  return true;
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
  static_assert(sizeof input == 16 + 16 + 8 + sizeof body);
  std::strcpy(input.role, role == ProofRole::connect ? "lintel connect" : "lintel accept");
  std::memcpy(input.nonce, nonce, sizeof input.nonce);
  input.number = number;
  input.body = body;
  std::memset(input.body.proof, 0, sizeof input.body.proof);
  return authenticate(&input, sizeof input, out);
}

bool JobProof::compute(const ResetBody& body, uint8_t (&out)[proof_bytes]) const noexcept {
  struct {
    char role[16];
    ResetBody body;
  } input{};
  static_assert(sizeof input == 16 + sizeof body);
  std::strcpy(input.role, "lintel reset");
  input.body = body;
  std::memset(input.body.proof, 0, sizeof input.body.proof);
  return authenticate(&input, sizeof input, out);
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

void JobProof::prove(ResetBody& body) const noexcept {
  if (admission_ != Admission::nothing && !compute(body, body.proof))
    std::memset(body.proof, 0, sizeof body.proof);
}

bool JobProof::check(const ResetBody& body) const noexcept {
  uint8_t expected[proof_bytes];
  return admission_ == Admission::nothing ||
         (compute(body, expected) && equal(expected, body.proof, proof_bytes));
}

std::unique_ptr<SecureChannel> JobProof::make_channel(SessionKeys& keys,
                                                      const HandshakeBody& opener,
                                                      const HandshakeBody& called,
                                                      bool is_opener) const noexcept {
  SessionTranscript transcript{};
  std::memcpy(transcript.share_of_opener, opener.share, share_bytes);
  std::memcpy(transcript.share_of_called, called.share, share_bytes);
  std::memcpy(transcript.nonce, opener.nonce, nonce_bytes);
  transcript.number_of_opener = opener.number;
  transcript.number_of_called = called.number;
  transcript.opener_nid = opener.from_nid;
  transcript.opener_pid = opener.from_pid;
  transcript.called_nid = called.from_nid;
  transcript.called_pid = called.from_pid;
  transcript.security = static_cast<uint64_t>(security_);
  std::unique_ptr<SecureChannel> channel(new (std::nothrow) SecureChannel);
  if (channel == nullptr ||
      !keys.derive(*crypto_, secret(), is_opener ? called.share : opener.share, transcript) ||
      !channel->send.open(*crypto_, is_opener ? keys.to_called() : keys.to_opener(), seal_) ||
      !channel->receive.open(*crypto_, is_opener ? keys.to_opener() : keys.to_called(), seal_))
    return nullptr;
  std::memcpy(channel->own_share, keys.share(), share_bytes);
  return channel;
}

std::string JobProof::describe() const {
  if (admission_ == Admission::job_key)
    return std::string("peers prove the job key (") + crypto_->description + ")";
  return admission_ == Admission::node_secret
             ? "only processes of this user on this node are admitted (no PTL_JOB_KEY, no "
               "PTL_UDP_OPEN=1)"
             : "peers are NOT authenticated (PTL_JOB_KEY is not set)";
}

SessionKeys::~SessionKeys() {
  explicit_bzero(secret_, sizeof secret_);
  explicit_bzero(to_called_, sizeof to_called_);
  explicit_bzero(to_opener_, sizeof to_opener_);
}

bool SessionKeys::make_share(const CryptoModule& crypto) noexcept {
  return crypto.make_share(secret_, share_);
}

bool SessionKeys::derive(const CryptoModule& crypto, std::span<const uint8_t> secret,
                         const uint8_t (&share_of_peer)[CryptoModule::share_bytes],
                         const SessionTranscript& transcript) noexcept {
  uint8_t agreed[CryptoModule::share_bytes];
  uint8_t root[hash_bytes];
  const bool good = crypto.agree(secret_, share_of_peer, agreed) &&
                    crypto.hmac_sha256(secret.data(), secret.size(), agreed, sizeof agreed, root) &&
                    expand(crypto, root, transcript, 'c', to_called_) &&
                    expand(crypto, root, transcript, 'o', to_opener_);
  explicit_bzero(agreed, sizeof agreed);
  explicit_bzero(root, sizeof root);
  return good;
}

}  // namespace lintel
