// AES-GCM by IPsec Multi-Buffer. Set-up and connection path; set_key(), seal() and open() are
// message path.
#include "crypto/ipsec_mb.h"

#if __has_include(<intel-ipsec-mb.h>)
#include <dlfcn.h>

#include <cstdio>
#include <new>

#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>
#endif

namespace lintel {

#if __has_include(<intel-ipsec-mb.h>)

namespace {

// The functions for this processor. The object that names them is much larger.
struct Direction {
  aes_gcm_enc_dec_update_t update;
  aes_gcm_enc_dec_finalize_t finish;
};
struct Functions {
  aes_gcm_pre_t set_key;
  aes_gmac_init_t begin_known;
  aes_gmac_update_t add_known;
  aes_gmac_finalize_t finish_known;
  aes_gcm_init_t begin;
  Direction seal;
  Direction open;
};
Functions functions;

struct Cipher {
  gcm_key_data key;
  gcm_context_data state;
  ~Cipher() { OPENSSL_cleanse(this, sizeof *this); }
};

Cipher& cipher_of(FrameCipher* cipher) { return *reinterpret_cast<Cipher*>(cipher); }

FrameCipher* make_cipher(bool) { return reinterpret_cast<FrameCipher*>(new (std::nothrow) Cipher); }

void delete_cipher(FrameCipher* cipher) { delete &cipher_of(cipher); }

bool set_key(FrameCipher* cipher, const uint8_t* key) {
  functions.set_key(key, &cipher_of(cipher).key);
  return true;
}

// Parts that are only authenticated.
void authenticate(Cipher& cipher, const uint8_t* nonce, const CipherPart* parts, unsigned count,
                  uint8_t* tag) {
  functions.begin_known(&cipher.key, &cipher.state, nonce, CryptoModule::cipher_nonce_bytes);
  for (unsigned i = 0; i < count; ++i)
    functions.add_known(&cipher.key, &cipher.state, static_cast<const uint8_t*>(parts[i].from),
                        parts[i].bytes);
  functions.finish_known(&cipher.key, &cipher.state, tag, CryptoModule::tag_bytes);
}

void process(const Direction& direction, Cipher& cipher, const uint8_t* nonce,
             const CipherPart* parts, unsigned count, uint8_t* tag) {
  if (parts[count - 1].to == nullptr) return authenticate(cipher, nonce, parts, count, tag);
  const CipherPart known = parts[0].to == nullptr ? parts[0] : CipherPart{};
  functions.begin(&cipher.key, &cipher.state, nonce, static_cast<const uint8_t*>(known.from),
                  known.bytes);
  for (unsigned i = parts[0].to == nullptr ? 1 : 0; i < count; ++i)
    direction.update(&cipher.key, &cipher.state, static_cast<uint8_t*>(parts[i].to),
                     static_cast<const uint8_t*>(parts[i].from), parts[i].bytes);
  direction.finish(&cipher.key, &cipher.state, tag, CryptoModule::tag_bytes);
}

bool seal(FrameCipher* cipher, const uint8_t* nonce, const CipherPart* parts, unsigned count,
          uint8_t* tag) {
  process(functions.seal, cipher_of(cipher), nonce, parts, count, tag);
  return true;
}

bool open(FrameCipher* cipher, const uint8_t* nonce, const CipherPart* parts, unsigned count,
          const uint8_t* tag) {
  uint8_t computed[CryptoModule::tag_bytes];
  process(functions.open, cipher_of(cipher), nonce, parts, count, computed);
  return CRYPTO_memcmp(computed, tag, sizeof computed) == 0;
}

template <typename Function>
bool find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

// Objects have the size that this version gave them.
bool is_known_version(unsigned version) { return version >> 8 == IMB_VERSION_NUM >> 8; }

// False: there is no such library, or the processor has no instructions for AES. `description` says
// what the library has to do with frames.
bool find_functions(const char*& description) {
  static char text[160];
  void* const library = dlopen("libIPSec_MB.so.1", RTLD_NOW | RTLD_LOCAL);
  decltype(imb_get_version)* version = nullptr;
  decltype(imb_get_version_str)* version_text = nullptr;
  decltype(alloc_mb_mgr)* make = nullptr;
  decltype(init_mb_mgr_auto)* choose = nullptr;
  decltype(free_mb_mgr)* forget = nullptr;
  if (library == nullptr || !find(library, "imb_get_version", version) ||
      !find(library, "imb_get_version_str", version_text))
    return false;
  const auto describe = [&](bool used, const char* reason) {
    std::snprintf(text, sizeof text, "%s; IPsec Multi-Buffer %s%s", description, version_text(),
                  used ? "" : reason);
    description = text;
    return used;
  };
  if (!is_known_version(version()))
    return describe(false, " is not used: this was built for " IMB_VERSION_STR);
  if (!find(library, "alloc_mb_mgr", make) || !find(library, "init_mb_mgr_auto", choose) ||
      !find(library, "free_mb_mgr", forget))
    return false;
  IMB_MGR* const all = make(0);
  if (all == nullptr) return false;
  IMB_ARCH chosen = IMB_ARCH_NONE;
  choose(all, &chosen);
  functions = {all->gcm128_pre,
               all->gmac128_init,
               all->gmac128_update,
               all->gmac128_finalize,
               all->gcm128_init,
               {all->gcm128_enc_update, all->gcm128_enc_finalize},
               {all->gcm128_dec_update, all->gcm128_dec_finalize}};
  const bool is_fast = chosen > IMB_ARCH_NOAESNI;
  forget(all);
  return describe(is_fast, " is not used: the processor has no instructions for AES");
}

}  // namespace

void use_ipsec_mb(CryptoModule& offer) {
  if (!find_functions(offer.description)) return;
  offer.make_cipher = make_cipher;
  offer.delete_cipher = delete_cipher;
  offer.set_key = set_key;
  offer.seal = seal;
  offer.open = open;
}

#else

void use_ipsec_mb(CryptoModule&) {}

#endif

}  // namespace lintel
