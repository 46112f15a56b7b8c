// AES-GCM by the library IPsec Multi-Buffer, which seals several times as fast as libcrypto 3.0.
// Set-up path.
#pragma once

#include "crypto/crypto_module.h"

namespace lintel {

// Puts the functions of that library in the place of those for frames in `offer`. Changes nothing
// if the library was not there when this was built, is not there now or of another version, or the
// processor has no instructions for AES. The description of `offer` says so of one that is there.
void use_ipsec_mb(CryptoModule& offer);

}  // namespace lintel
