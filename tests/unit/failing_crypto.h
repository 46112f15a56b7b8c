// The functions of the module crypto, of which sealing fails when the test says so.
#pragma once

#include "crypto/crypto_module.h"

namespace lintel::test {

class FailingCrypto {
 public:
  // Does not fail yet. The result outlives all that uses it.
  [[nodiscard]] static const CryptoModule& over(const CryptoModule& real) {
    static CryptoModule module;
    fails = false;
    real_ = &real;
    module = real;
    module.seal = [](FrameCipher* cipher, const uint8_t* nonce, const CipherPart* parts,
                     unsigned count, uint8_t* tag) {
      return !fails && real_->seal(cipher, nonce, parts, count, tag);
    };
    return module;
  }

  static inline bool fails = false;

 private:
  static inline const CryptoModule* real_ = nullptr;
};

}  // namespace lintel::test
