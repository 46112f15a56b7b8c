// HMAC, scrypt, X25519 and AES-GCM by libcrypto (OpenSSL), AES-GCM by IPsec Multi-Buffer where that
// is. Connection path; set_key(), seal() and open() are message path.
#include "crypto/crypto_module.h"

#include <climits>
#include <memory>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/params.h>

#include "crypto/ipsec_mb.h"
#include "module_version.h"
#include "util/module.h"

namespace lintel {

namespace {

struct FreeKey {
  void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
};
struct FreeKeyContext {
  void operator()(EVP_PKEY_CTX* context) const noexcept { EVP_PKEY_CTX_free(context); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, FreeKeyContext>;

bool hmac_sha256(const void* key, size_t key_bytes, const void* data, size_t data_bytes,
                 uint8_t* out) {
  if (key_bytes > INT_MAX) return false;
  unsigned length = 0;
  return HMAC(EVP_sha256(), key, static_cast<int>(key_bytes),
              static_cast<const unsigned char*>(data), data_bytes, out, &length) != nullptr &&
         length == CryptoModule::hash_bytes;
}

bool stretch(const void* key, size_t key_bytes, uint8_t* out) {
  constexpr unsigned char salt[] = "lintel job key";
  constexpr uint64_t cost = 1 << 14;  // takes 16 MiB with 8 blocks
  constexpr uint64_t blocks = 8;
  constexpr uint64_t most_bytes = 64 << 20;
  return EVP_PBE_scrypt(static_cast<const char*>(key), key_bytes, salt, sizeof salt - 1, cost,
                        blocks, 1, most_bytes, out, CryptoModule::hash_bytes) == 1;
}

bool make_share(uint8_t* secret, uint8_t* share) {
  const Key key(EVP_PKEY_Q_keygen(nullptr, nullptr, "X25519"));
  size_t secret_bytes = CryptoModule::share_bytes;
  size_t bytes = CryptoModule::share_bytes;
  return key != nullptr && EVP_PKEY_get_raw_private_key(key.get(), secret, &secret_bytes) == 1 &&
         EVP_PKEY_get_raw_public_key(key.get(), share, &bytes) == 1;
}

bool agree(const uint8_t* secret, const uint8_t* share_of_peer, uint8_t* out) {
  const Key own(
      EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, secret, CryptoModule::share_bytes));
  const Key peer(EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, share_of_peer,
                                             CryptoModule::share_bytes));
  if (own == nullptr || peer == nullptr) return false;
  const KeyContext context(EVP_PKEY_CTX_new(own.get(), nullptr));
  size_t bytes = CryptoModule::share_bytes;
  // Fails for shares of small order, whose result is the same for every key.
  return context != nullptr && EVP_PKEY_derive_init(context.get()) == 1 &&
         EVP_PKEY_derive_set_peer(context.get(), peer.get()) == 1 &&
         EVP_PKEY_derive(context.get(), out, &bytes) == 1 && bytes == CryptoModule::share_bytes;
}

EVP_CIPHER_CTX* context_of(FrameCipher* cipher) {
  return reinterpret_cast<EVP_CIPHER_CTX*>(cipher);
}

void delete_cipher(FrameCipher* cipher) { EVP_CIPHER_CTX_free(context_of(cipher)); }

// Found once: that takes locks. It lives as long as the process.
const EVP_CIPHER* aes_gcm() {
  static const EVP_CIPHER* const cipher = EVP_CIPHER_fetch(nullptr, "AES-128-GCM", nullptr);
  return cipher;
}

FrameCipher* make_cipher(bool seals) {
  EVP_CIPHER_CTX* const context = EVP_CIPHER_CTX_new();
  if (context == nullptr) return nullptr;
  // The nonce has 12 bytes by default.
  if (aes_gcm() != nullptr &&
      EVP_CipherInit_ex(context, aes_gcm(), nullptr, nullptr, nullptr, seals ? 1 : 0) == 1)
    return reinterpret_cast<FrameCipher*>(context);
  EVP_CIPHER_CTX_free(context);
  return nullptr;
}

// The tag as a parameter: cheaper than EVP_CIPHER_CTX_ctrl(), which makes the same of it.
struct TagParameter {
  explicit TagParameter(const uint8_t* tag)
      : list{OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG,
                                               const_cast<uint8_t*>(tag), CryptoModule::tag_bytes),
             OSSL_PARAM_construct_end()} {}
  OSSL_PARAM list[2];
};

constexpr int as_before = -1;  // sealing or opening

bool set_key(FrameCipher* cipher, const uint8_t* key) {
  return EVP_CipherInit_ex(context_of(cipher), nullptr, nullptr, key, nullptr, as_before) == 1;
}

bool process(EVP_CIPHER_CTX* context, const uint8_t* nonce, const CipherPart* parts,
             unsigned count) {
  if (EVP_CipherInit_ex(context, nullptr, nullptr, nullptr, nonce, as_before) != 1) return false;
  int length = 0;
  for (unsigned i = 0; i < count; ++i)
    if (EVP_CipherUpdate(context, static_cast<unsigned char*>(parts[i].to), &length,
                         static_cast<const unsigned char*>(parts[i].from),
                         static_cast<int>(parts[i].bytes)) != 1)
      return false;
  return true;
}

bool seal(FrameCipher* cipher, const uint8_t* nonce, const CipherPart* parts, unsigned count,
          uint8_t* tag) {
  EVP_CIPHER_CTX* const context = context_of(cipher);
  int length = 0;
  return process(context, nonce, parts, count) && EVP_CipherFinal_ex(context, tag, &length) == 1 &&
         EVP_CIPHER_CTX_get_params(context, TagParameter(tag).list) == 1;
}

bool open(FrameCipher* cipher, const uint8_t* nonce, const CipherPart* parts, unsigned count,
          const uint8_t* tag) {
  EVP_CIPHER_CTX* const context = context_of(cipher);
  unsigned char nothing[CryptoModule::tag_bytes];
  int length = 0;
  return process(context, nonce, parts, count) &&
         EVP_CIPHER_CTX_set_params(context, TagParameter(tag).list) == 1 &&
         EVP_CipherFinal_ex(context, nothing, &length) == 1;
}

const CryptoModule offer = [] {
  CryptoModule made{OpenSSL_version(OPENSSL_VERSION),
                    hmac_sha256,
                    stretch,
                    make_share,
                    agree,
                    make_cipher,
                    delete_cipher,
                    set_key,
                    seal,
                    open};
  use_ipsec_mb(made);
  return made;
}();

}  // namespace
}  // namespace lintel

const lintel::Module lintel_module{LINTEL_MODULE_VERSION, &lintel::offer};
