// Frames sealed with keys: changed, repeated and forged frames are rejected.
#include "reliable/frame_seal.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "reliable/job_proof.h"
#include "support/modules.h"
#include "unit/failing_crypto.h"
#include "util/guarded_memory.h"
#include "util/module.h"

namespace lintel {
namespace {

using Bytes = std::vector<std::byte>;
using test::FailingCrypto;

const CryptoModule* crypto() {
  std::string reason;
  return test::use_built_modules() ? static_cast<const CryptoModule*>(load_module("crypto", reason))
                                   : nullptr;
}

constexpr uint8_t key[CryptoModule::cipher_key_bytes] = {1, 2, 3};

class FrameSealTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (crypto() == nullptr) GTEST_SKIP() << test::no_crypto_module;
    open({GetParam()});
  }
  void open(const SealSettings& settings) {
    ASSERT_TRUE(sealer_.emplace().open(*crypto(), key, settings));
    ASSERT_TRUE(opener_.emplace().open(*crypto(), key, settings));
  }
  // A whole frame with this body.
  Bytes sealed(const Bytes& body) {
    FrameHeader header{};
    header.connection = 77;
    Bytes frame(sizeof header + body.size() + tag_bytes);
    std::copy(body.begin(), body.end(), frame.begin() + sizeof header);
    last_counter_ =
        sealer_->seal(header, {frame.data(), static_cast<uint32_t>(frame.size()) - tag_bytes});
    return frame;
  }
  FrameOpener::Result opened(Bytes& frame) {
    FrameHeader header;
    std::memcpy(&header, frame.data(), sizeof header);
    return opener_->open_frame(header, frame.data(), static_cast<uint32_t>(frame.size()));
  }
  static Bytes body_of(const Bytes& frame) {
    return {frame.begin() + sizeof(FrameHeader), frame.end() - tag_bytes};
  }

  std::optional<FrameSealer> sealer_;
  std::optional<FrameOpener> opener_;
  uint64_t last_counter_ = 0;
};

TEST_P(FrameSealTest, WhatIsSealedOpensAsItWas) {
  for (const size_t length : {0u, 1u, 8u, 100u, 1400u, 32'000u}) {
    const Bytes body(length, std::byte{0x5a});
    Bytes frame = sealed(body);
    if (length >= 8) {
      EXPECT_EQ(body_of(frame) != body, GetParam()) << "encrypted";
    }
    EXPECT_EQ(opened(frame), FrameOpener::Result::good);
    EXPECT_EQ(body_of(frame), body);
  }
}

TEST_P(FrameSealTest, EveryChangedByteIsRefused) {
  const Bytes good = sealed(Bytes(40, std::byte{3}));
  for (size_t i = 0; i < good.size(); ++i) {
    Bytes frame = good;
    frame[i] ^= std::byte{0x10};
    EXPECT_NE(opened(frame), FrameOpener::Result::good) << "byte " << i;
  }
  Bytes frame = good;
  frame.erase(frame.begin() + 40);
  EXPECT_NE(opened(frame), FrameOpener::Result::good);
  frame = good;
  EXPECT_EQ(opened(frame), FrameOpener::Result::good);
}

TEST_P(FrameSealTest, ARepeatedFrameIsRefused) {
  const Bytes first = sealed(Bytes(8));
  const Bytes second = sealed(Bytes(8));
  EXPECT_NE(first, second) << "no two transmissions are the same";
  for (const Bytes& frame : {second, first}) {
    Bytes copy = frame;
    EXPECT_EQ(opened(copy), FrameOpener::Result::good) << "in any order";
    copy = frame;
    EXPECT_EQ(opened(copy), FrameOpener::Result::replayed);
  }
}

TEST_P(FrameSealTest, AnotherKeyDoesNotOpen) {
  Bytes frame = sealed(Bytes(8));
  constexpr uint8_t other[CryptoModule::cipher_key_bytes] = {1, 2, 4};
  ASSERT_TRUE(opener_.emplace().open(*crypto(), other, {GetParam()}));
  EXPECT_EQ(opened(frame), FrameOpener::Result::damaged);
}

// libcrypto may fail: out of memory, a module in an error state.
TEST_P(FrameSealTest, NothingIsSealedAfterAFailure) {
  const CryptoModule& failing = FailingCrypto::over(*crypto());
  ASSERT_TRUE(sealer_.emplace().open(failing, key, {GetParam()}));
  sealed(Bytes(40));
  EXPECT_EQ(last_counter_, 1u);
  for (const bool fails : {true, false}) {
    FailingCrypto::fails = fails;
    sealed(Bytes(40));
    EXPECT_EQ(last_counter_, 0u);
    EXPECT_TRUE(sealer_->is_broken());
  }
}

TEST_P(FrameSealTest, WithoutAKeyForTheNextEpochNothingIsSealed) {
  const CryptoModule& failing = FailingCrypto::over(*crypto());
  ASSERT_TRUE(sealer_.emplace().open(failing, key, {GetParam(), 4, 15}));
  sealed(Bytes(40));
  EXPECT_EQ(last_counter_, 15u);
  FailingCrypto::fails = true;
  sealed(Bytes(40));
  EXPECT_EQ(last_counter_, 0u);
  EXPECT_TRUE(sealer_->is_broken());
}

// Frames of anybody would open with a key of zeros.
TEST_P(FrameSealTest, AKeyThatWasNotMadeOpensNothing) {
  const CryptoModule& failing = FailingCrypto::over(*crypto());
  FailingCrypto::fails = true;
  EXPECT_FALSE(opener_.emplace().open(failing, key, {GetParam()}));
}

TEST_P(FrameSealTest, AFrameThatCannotBeMadePlainIsNotSealedAgain) {
  const CryptoModule& failing = FailingCrypto::over(*crypto());
  ASSERT_TRUE(sealer_.emplace().open(failing, key, {GetParam()}));
  Bytes frame = sealed(Bytes(40));
  FailingCrypto::fails = true;
  sealer_->undo(static_cast<uint32_t>(last_counter_), frame.data(), sizeof(FrameHeader) + 40);
  FailingCrypto::fails = false;
  EXPECT_TRUE(sealer_->is_broken());
  sealed(Bytes(40));
  EXPECT_EQ(last_counter_, 0u);
}

TEST_P(FrameSealTest, TheBodyOfASentFrameCanBeHadAgain) {
  const Bytes body(100, std::byte{9});
  Bytes frame = sealed(body);
  if (GetParam())
    sealer_->undo(static_cast<uint32_t>(last_counter_), frame.data(), sizeof(FrameHeader) + 100);
  EXPECT_EQ(body_of(frame), body);
}

// Keys change long before counters wrap. Late frames of the previous epoch can still be opened.
TEST_P(FrameSealTest, KeysChangeWhileFramesAreUnderWay) {
  open({GetParam(), 4, (uint64_t{1} << 32) - 40});
  std::vector<Bytes> late;
  for (int i = 0; i < 400; ++i) {
    Bytes frame = sealed(Bytes(20, static_cast<std::byte>(i)));
    if (i % 7 == 3) {
      late.push_back(frame);
      continue;
    }
    EXPECT_EQ(opened(frame), FrameOpener::Result::good) << i;
    EXPECT_EQ(body_of(frame), Bytes(20, static_cast<std::byte>(i)));
    if (i % 7 == 5) {
      EXPECT_EQ(opened(late.back()), FrameOpener::Result::good) << "two frames late, " << i;
    }
  }
}

// A frame whose payload is in another buffer, as in the transport.
TEST_P(FrameSealTest, PayloadElsewhereIsSealedWithIt) {
  const Bytes body(24, std::byte{1});
  const Bytes payload(5001, std::byte{2});
  Bytes whole = body;
  whole.insert(whole.end(), payload.begin(), payload.end());
  Bytes frame(sizeof(FrameHeader) + whole.size() + tag_bytes);
  const auto held_bytes = static_cast<uint32_t>(sizeof(FrameHeader) + body.size());
  std::copy(body.begin(), body.end(), frame.begin() + sizeof(FrameHeader));
  const uint64_t counter = sealer_->seal(
      {}, {frame.data(), held_bytes, payload.data(), static_cast<uint32_t>(payload.size())});
  EXPECT_NE(counter, 0u);
  EXPECT_EQ(payload, Bytes(payload.size(), std::byte{2}));
  if (!GetParam()) {
    std::copy_n(frame.begin() + held_bytes, tag_bytes, frame.end() - tag_bytes);
    std::copy(payload.begin(), payload.end(), frame.begin() + held_bytes);
  }
  Bytes copy = frame;
  EXPECT_EQ(opened(copy), FrameOpener::Result::good);
  EXPECT_EQ(body_of(copy), whole);
  if (!GetParam()) return;
  EXPECT_NE(body_of(frame), whole);
  sealer_->undo(static_cast<uint32_t>(counter), frame.data(), held_bytes);
  frame.resize(held_bytes + tag_bytes);
  EXPECT_EQ(body_of(frame), body);
}

TEST_P(FrameSealTest, PayloadThatIsGoneIsReported) {
  const Bytes body(8, std::byte{7});
  const auto held_bytes = static_cast<uint32_t>(sizeof(FrameHeader) + body.size());
  Bytes held(held_bytes + 100 + tag_bytes);
  std::copy(body.begin(), body.end(), held.begin() + sizeof(FrameHeader));
  const auto* const nowhere = reinterpret_cast<const std::byte*>(uintptr_t{4096});
  install_fault_handler();
  EXPECT_EQ(sealer_->seal({}, {held.data(), held_bytes, nowhere, 100}), 0u);
  held.resize(held_bytes + tag_bytes);
  EXPECT_EQ(body_of(held), body) << "what the frame holds is as it was";
  Bytes frame = sealed(Bytes(8));
  EXPECT_EQ(opened(frame), FrameOpener::Result::good) << "the next one is as good as ever";
}

INSTANTIATE_TEST_SUITE_P(Both, FrameSealTest, testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "encrypted" : "authenticated");
});

// Results that every implementation must have (The Galois/Counter Mode of Operation, test case 4,
// and the same bytes divided differently).
struct KnownSeal {
  std::vector<std::pair<size_t, size_t>> known;  // parts of the message: from, to
  size_t text;                                   // where the encrypted part begins
  const char* tag;
};

std::vector<uint8_t> bytes_of(const std::string& hex) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(static_cast<uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

class AesGcmTest : public testing::TestWithParam<KnownSeal> {};

TEST_P(AesGcmTest, SealsAsTheStandardSays) {
  if (crypto() == nullptr) GTEST_SKIP() << test::no_crypto_module;
  const auto key_bytes = bytes_of("feffe9928665731c6d6a8f9467308308");
  const auto nonce = bytes_of("cafebabefacedbaddecaf888");
  const auto message = bytes_of(
      "feedfacedeadbeeffeedfacedeadbeefabaddad2"
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
      "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39");
  const auto encrypted = bytes_of(
      "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e"
      "21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091");
  const KnownSeal& expected = GetParam();
  std::vector<uint8_t> text(message.begin() + static_cast<ptrdiff_t>(expected.text), message.end());
  const std::vector<uint8_t> plain = text;
  std::vector<CipherPart> parts;
  for (const auto& [from, to] : expected.known)
    parts.push_back({message.data() + from, nullptr, to - from});
  if (!text.empty()) parts.push_back({text.data(), text.data(), text.size()});
  const auto count = static_cast<unsigned>(parts.size());

  FrameCipher* const sealer = crypto()->make_cipher(true);
  FrameCipher* const opener = crypto()->make_cipher(false);
  ASSERT_TRUE(crypto()->set_key(sealer, key_bytes.data()));
  ASSERT_TRUE(crypto()->set_key(opener, key_bytes.data()));
  std::vector<uint8_t> tag(CryptoModule::tag_bytes);
  EXPECT_TRUE(crypto()->seal(sealer, nonce.data(), parts.data(), count, tag.data()));
  EXPECT_EQ(tag, bytes_of(expected.tag));
  if (!text.empty()) {
    EXPECT_EQ(text, encrypted);
  }
  EXPECT_TRUE(crypto()->open(opener, nonce.data(), parts.data(), count, tag.data()));
  EXPECT_EQ(text, plain);
  tag[15] ^= 1;
  EXPECT_FALSE(crypto()->open(opener, nonce.data(), parts.data(), count, tag.data()));
  crypto()->delete_cipher(sealer);
  crypto()->delete_cipher(opener);
}

INSTANTIATE_TEST_SUITE_P(
    Known, AesGcmTest,
    testing::Values(KnownSeal{{{0, 20}}, 20, "5bc94fbc3221a5db94fae95ae7121a47"},
                    KnownSeal{{}, 20, "cc15abcc191161501aabab46b8fbac85"},
                    KnownSeal{{{0, 80}}, 80, "4b28357f198fc8344618fa46306b827f"},
                    KnownSeal{{{0, 33}, {33, 80}}, 80, "4b28357f198fc8344618fa46306b827f"}));

class SessionKeysTest : public testing::Test {
 protected:
  void SetUp() override {
    if (crypto() == nullptr) GTEST_SKIP() << test::no_crypto_module;
    ASSERT_TRUE(opener_.make_share(*crypto()));
    ASSERT_TRUE(called_.make_share(*crypto()));
    std::memcpy(transcript_.share_of_opener, opener_.share(), sizeof opener_.share());
    std::memcpy(transcript_.share_of_called, called_.share(), sizeof called_.share());
    transcript_.number_of_opener = 1;
  }
  static bool derive(SessionKeys& keys, const SessionKeys& peer, const std::string& secret,
                     const SessionTranscript& transcript) {
    return keys.derive(*crypto(), {reinterpret_cast<const uint8_t*>(secret.data()), secret.size()},
                       peer.share(), transcript);
  }
  static std::string text(const SessionKeys::Key& of) {
    return {reinterpret_cast<const char*>(of), sizeof of};
  }

  SessionKeys opener_, called_;
  SessionTranscript transcript_{};
};

TEST_F(SessionKeysTest, BothSidesHaveTheSameKeysOnePerDirection) {
  ASSERT_TRUE(derive(opener_, called_, "secret", transcript_));
  ASSERT_TRUE(derive(called_, opener_, "secret", transcript_));
  EXPECT_EQ(text(opener_.to_called()), text(called_.to_called()));
  EXPECT_EQ(text(opener_.to_opener()), text(called_.to_opener()));
  EXPECT_NE(text(opener_.to_called()), text(opener_.to_opener()));
}

TEST_F(SessionKeysTest, DependOnTheSecretAndOnEverythingThatWasSaid) {
  ASSERT_TRUE(derive(opener_, called_, "secret", transcript_));
  const std::string keys = text(opener_.to_called());
  ASSERT_TRUE(derive(opener_, called_, "secreT", transcript_));
  EXPECT_NE(text(opener_.to_called()), keys);
  transcript_.security = 1;
  ASSERT_TRUE(derive(opener_, called_, "secret", transcript_));
  EXPECT_NE(text(opener_.to_called()), keys);
}

// With a share of zeros, the shared secret would be zero, which everybody could compute.
TEST_F(SessionKeysTest, RefuseAShareThatIsNone) {
  const uint8_t none[CryptoModule::share_bytes] = {};
  EXPECT_FALSE(opener_.derive(*crypto(), {}, none, transcript_));
}

// A counter is accepted once. Late ones are accepted, too old ones are not.

bool take(ReplayWindow& window, uint64_t counter) {
  if (!window.may_be_new(counter)) return false;
  window.mark(counter);
  return true;
}

TEST(ReplayWindowTest, TakesEachCounterOnce) {
  ReplayWindow window;
  for (uint64_t counter = 1; counter < 10'000; ++counter) {
    EXPECT_TRUE(take(window, counter));
    EXPECT_FALSE(take(window, counter));
  }
  EXPECT_FALSE(take(window, 0)) << "no frame has it";
}

TEST(ReplayWindowTest, TakesLateOnesUntilTheyAreTooOld) {
  ReplayWindow window;
  EXPECT_TRUE(take(window, 5'000));
  EXPECT_TRUE(take(window, 5'000 - ReplayWindow::frames + 1));
  EXPECT_FALSE(take(window, 5'000 - ReplayWindow::frames));
  EXPECT_TRUE(take(window, 4'999));
  EXPECT_FALSE(take(window, 4'999));
}

TEST(ReplayWindowTest, FindsTheWholeCounterAcrossHalves) {
  const uint64_t near_end = (uint64_t{7} << 32) - 3;
  ReplayWindow window(near_end);
  for (uint64_t counter = near_end; counter < near_end + 10; ++counter) {
    EXPECT_EQ(window.whole(static_cast<uint32_t>(counter)), counter);
    EXPECT_TRUE(take(window, counter));
  }
  EXPECT_EQ(window.whole(static_cast<uint32_t>(near_end)), near_end) << "a late one";
  EXPECT_EQ(ReplayWindow().whole(0xffff'ffff), 0u) << "there was none before the first";
}

// Compared with a set of all accepted counters.
TEST(ReplayWindowTest, NeverTakesOneTwiceInAnyOrder) {
  std::mt19937_64 random(7);
  ReplayWindow window;
  std::set<uint64_t> taken;
  uint64_t highest = 0;
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t back = random() % 3 == 0 ? random() % (2 * ReplayWindow::frames) : random() % 4;
    const uint64_t ahead = random() % 1'000 == 0 ? random() % 20'000 : random() % 3;
    const uint64_t counter = highest + ahead > back ? highest + ahead - back : 1;
    const bool is_new = taken.count(counter) == 0;
    const bool in_window = counter > highest || highest - counter < ReplayWindow::frames;
    EXPECT_EQ(take(window, counter), is_new && in_window) << counter << " after " << highest;
    if (is_new && in_window) taken.insert(counter);
    highest = std::max(highest, counter);
  }
}

}  // namespace
}  // namespace lintel
