// HMAC-SHA-256 by libcrypto (OpenSSL). Connection path.
#include "crypto/crypto_module.h"

#include <climits>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "util/module.h"

namespace {

bool hmac_sha256(const void* key, size_t key_bytes, const void* data, size_t data_bytes,
                 uint8_t* out) {
  if (key_bytes > INT_MAX) return false;
  unsigned length = 0;
  return HMAC(EVP_sha256(), key, static_cast<int>(key_bytes),
              static_cast<const unsigned char*>(data), data_bytes, out, &length) != nullptr &&
         length == 32;
}

const lintel::CryptoModule offer{OpenSSL_version(OPENSSL_VERSION), hmac_sha256};

}  // namespace

const lintel::Module lintel_module{LINTEL_VERSION, &offer};
