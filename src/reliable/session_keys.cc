// HKDF over what two ephemeral keys agree on.
#include "reliable/session_keys.h"

#include <cstring>

namespace lintel {

namespace {

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
