// Interface of the module crypto: only the module needs libcrypto, not libportals. All functions
// report failure by false or a null pointer.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lintel {

// AES-GCM with one key, which either seals or opens. For one thread at a time.
struct FrameCipher;

// A part of what a tag protects.
struct CipherPart {
  const void* from;
  void* to;  // null: authenticated only; else encrypted or decrypted to there, `from` is allowed
  size_t bytes;
};

struct CryptoModule {
  static constexpr size_t hash_bytes = 32;
  static constexpr size_t share_bytes = 32;  // X25519
  static constexpr size_t cipher_key_bytes = 16;
  static constexpr size_t cipher_nonce_bytes = 12;
  static constexpr size_t tag_bytes = 16;

  const char* description;  // description of the library used

  // --- connection path, any thread
  // HMAC-SHA-256: hash_bytes to `out`.
  bool (*hmac_sha256)(const void* key, size_t key_bytes, const void* data, size_t data_bytes,
                      uint8_t* out);
  // scrypt: makes guesses at a short key expensive. hash_bytes to `out`; takes about 50 ms.
  bool (*stretch)(const void* key, size_t key_bytes, uint8_t* out);
  // An ephemeral key pair, share_bytes each, and what two of them agree on.
  bool (*make_share)(uint8_t* secret, uint8_t* share);
  bool (*agree)(const uint8_t* secret, const uint8_t* share_of_peer, uint8_t* out);
  FrameCipher* (*make_cipher)(bool seals);
  void (*delete_cipher)(FrameCipher* cipher);

  // --- message path: no allocation
  bool (*set_key)(FrameCipher* cipher, const uint8_t* key);
  // Parts that are only authenticated come first; before encrypted ones there is at most one of
  // them. Writes the tag.
  bool (*seal)(FrameCipher* cipher, const uint8_t* nonce, const CipherPart* parts, unsigned count,
               uint8_t* tag);
  // Compares the tag. False: what was decrypted is not to be used.
  bool (*open)(FrameCipher* cipher, const uint8_t* nonce, const CipherPart* parts, unsigned count,
               const uint8_t* tag);
};

}  // namespace lintel
