// What the module crypto offers: it keeps libcrypto out of libportals itself.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lintel {

struct CryptoModule {
  const char* description;  // of the library behind it, for people
  // 32 bytes to `out`; false: it failed, and nothing was written. Thread-safe.
  bool (*hmac_sha256)(const void* key, size_t key_bytes, const void* data, size_t data_bytes,
                      uint8_t* out);
};

}  // namespace lintel
