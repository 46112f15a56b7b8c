// What the module libportals-crypto offers: it keeps libcrypto out of libportals itself.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lintel {

inline constexpr unsigned crypto_module_version = 1;

struct CryptoModule {
  const char* description;  // of the library behind it, for people
  // 32 bytes to `out`; false: it failed, and nothing was written. Thread-safe.
  bool (*hmac_sha256)(const void* key, size_t key_bytes, const void* data, size_t data_bytes,
                      uint8_t* out);
};

}  // namespace lintel

// The entry point, see util/module.h.
extern "C" __attribute__((visibility("default"))) const void* lintel_crypto_module_1();
