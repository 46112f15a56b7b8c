// Checks of the data. Used with --verify only; then in the timed loops, so the times include it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

#include "ptl_perf/region.h"

namespace lintel::perf {

/** Knows what each operation, numbered from 0, shall do to memory. */
class Verifier {
 public:
  virtual ~Verifier() = default;
  Verifier() = default;
  Verifier(const Verifier&) = delete;
  Verifier& operator=(const Verifier&) = delete;

  /** Called at the initiator before operation `number`: fills the data to be sent, overwrites those
   *  that will be fetched. */
  virtual void prepare(std::uint64_t number) = 0;

  /** Called at the initiator after the reply to operation `number`. Throws on wrong data. */
  virtual void inspect_reply(std::uint64_t /*number*/) {}

  /** Called at the target when `count` operations from `first` have arrived. Throws on wrong data.
   */
  virtual void inspect_arrivals(std::uint64_t first, std::uint64_t count) = 0;
};

/** Hooks for the loop of a ping-pong. */
struct ArrivalCheck {
  Verifier& verifier;
  std::uint64_t sent = 0;
  std::uint64_t arrived = 0;
  void before() { verifier.prepare(sent++); }
  void after() { verifier.inspect_arrivals(arrived++, 1); }
};

/** Hooks for the loop of operations with a reply. */
struct ReplyCheck {
  Verifier& verifier;
  std::uint64_t number = 0;
  void before() { verifier.prepare(number); }
  void after() { verifier.inspect_reply(number++); }
};

/** Fills a slot with bytes that belong to this sender and this number alone. */
void fill_pattern(const Region& region, std::uint64_t slot, unsigned sender, std::uint64_t number);

/** Fills a slot with bytes that differ from fill_pattern() everywhere. */
void spoil_pattern(const Region& region, std::uint64_t slot, unsigned sender, std::uint64_t number);

/** Throws ExitCode::wrong_data unless the slot holds that pattern and its guard is intact. */
void check_pattern(const Region& region, std::uint64_t slot, unsigned sender, std::uint64_t number,
                   const std::string& what);

/** Throws ExitCode::wrong_data if the guard behind the slot was written. */
void check_guard(const Region& region, std::uint64_t slot, const std::string& what);

/** Puts: both ends of a pair send patterns from one region into the other. */
class PutVerifier final : public Verifier {
 public:
  PutVerifier(const Region& sent, const Region& received, unsigned rank, unsigned peer);
  void prepare(std::uint64_t number) override;
  void inspect_arrivals(std::uint64_t first, std::uint64_t count) override;

 private:
  const Region& sent_;
  const Region& received_;
  unsigned rank_;
  unsigned peer_;
};

/** Gets: the target holds a pattern for each slot; the initiator spoils, fetches and checks. */
class GetVerifier final : public Verifier {
 public:
  GetVerifier(const Region& served, const Region& fetched, unsigned rank, unsigned peer);
  void prepare(std::uint64_t number) override;
  void inspect_reply(std::uint64_t number) override;
  void inspect_arrivals(std::uint64_t first, std::uint64_t count) override;

 private:
  const Region& served_;
  const Region& fetched_;
  unsigned rank_;
  unsigned peer_;
};

}  // namespace lintel::perf
