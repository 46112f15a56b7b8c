/* ratomic_probe.c: remote atomics between the ranks of a job.
 *
 * First every thread of every rank applies random operations to its own words at every rank, and to
 * a model of them. All 138 legal pairs of type and operation occur. Then all threads apply
 * operations to the same words. The final values do not depend on the order, so operations that
 * were not atomic are detected. Last, the bits of special values must arrive unchanged.
 *
 * Usage: ratomic_probe <threads> <rounds>
 *        ratomic_probe illegal|pair|operation|outside     (ends with a message)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnet_ratomic.h>
#include <math.h>

#include "checks.h"
#ifdef GASNET_PAR
#include <pthread.h>
#endif

enum { kMostRanks = 16, kMostThreads = 4, kTypes = 6, kOps = 25 };

static gex_TM_t backwards; /* the same members in reverse order */
static unsigned int threads, rounds;
static char* segments[kMostRanks];

#define ALL_NUMBERS                                                                            \
  (GEX_OP_ADD | GEX_OP_SUB | GEX_OP_MULT | GEX_OP_MIN | GEX_OP_MAX | GEX_OP_INC | GEX_OP_DEC | \
   GEX_OP_SET | GEX_OP_CAS)
#define ALL_BITWISE (GEX_OP_AND | GEX_OP_OR | GEX_OP_XOR)
#define BOTH(ops) ((ops) | GEX_OP_TO_FETCHING(ops))
#define FLOAT_OPS (BOTH(ALL_NUMBERS) | GEX_OP_GET)
#define INTEGER_OPS (FLOAT_OPS | BOTH(ALL_BITWISE))

static const gex_OP_t every_op[kOps] = {
    GEX_OP_ADD,  GEX_OP_SUB,  GEX_OP_MULT, GEX_OP_MIN,  GEX_OP_MAX,   GEX_OP_INC,  GEX_OP_DEC,
    GEX_OP_SET,  GEX_OP_CAS,  GEX_OP_FADD, GEX_OP_FSUB, GEX_OP_FMULT, GEX_OP_FMIN, GEX_OP_FMAX,
    GEX_OP_FINC, GEX_OP_FDEC, GEX_OP_SWAP, GEX_OP_FCAS, GEX_OP_GET,   GEX_OP_AND,  GEX_OP_OR,
    GEX_OP_XOR,  GEX_OP_FAND, GEX_OP_FOR,  GEX_OP_FXOR};
static unsigned char tried[kTypes][kOps];

/* The beginning of a segment: words that all threads change, then words of each thread. */
struct shared {
  uint64_t added, counted, swapped, guarded, guard, least, most, bits, product;
  int32_t small;
  double real, storm;
  float real_small;
};
#define SHARED_BYTES ((size_t)4096)
static struct shared* shared_of(gex_Rank_t rank) { return (struct shared*)segments[rank]; }

struct worker {
  unsigned int thread;
  uint64_t random;
};
static uint64_t next_random(struct worker* worker) {
  worker->random ^= worker->random << 13;
  worker->random ^= worker->random >> 7;
  worker->random ^= worker->random << 17;
  return worker->random;
}
static unsigned int below(struct worker* worker, unsigned int limit) {
  return (unsigned int)((next_random(worker) >> 20) % limit);
}
static char* own_word(const struct worker* worker, gex_Rank_t rank, int type) {
  return segments[rank] + SHARED_BYTES +
         ((me * threads + worker->thread) * kTypes + (unsigned)type) * 8;
}
static gex_Flags_t some_flags(struct worker* worker) {
  static const gex_Flags_t choices[] = {0, GEX_FLAG_AD_ACQ, GEX_FLAG_AD_REL,
                                        GEX_FLAG_AD_ACQ | GEX_FLAG_AD_REL, GEX_FLAG_IMMEDIATE};
  return choices[below(worker, 5)];
}

/* The operations by the definitions of the specification. It does not define MIN and MAX of values
 * that are not a number: in this library the target does not change. */
#define DEFINE_MODEL(S, T, W)                        \
  static T model_##S(gex_OP_t op, T old, T a, T b) { \
    switch (op) {                                    \
      case GEX_OP_ADD:                               \
      case GEX_OP_FADD:                              \
        return (T)((W)old + (W)a);                   \
      case GEX_OP_SUB:                               \
      case GEX_OP_FSUB:                              \
        return (T)((W)old - (W)a);                   \
      case GEX_OP_MULT:                              \
      case GEX_OP_FMULT:                             \
        return (T)((W)old * (W)a);                   \
      case GEX_OP_MIN:                               \
      case GEX_OP_FMIN:                              \
        return is_nan_##S(old) || old < a ? old : a; \
      case GEX_OP_MAX:                               \
      case GEX_OP_FMAX:                              \
        return is_nan_##S(old) || old > a ? old : a; \
      case GEX_OP_INC:                               \
      case GEX_OP_FINC:                              \
        return (T)((W)old + 1);                      \
      case GEX_OP_DEC:                               \
      case GEX_OP_FDEC:                              \
        return (T)((W)old - 1);                      \
      case GEX_OP_SET:                               \
      case GEX_OP_SWAP:                              \
        return a;                                    \
      case GEX_OP_CAS:                               \
      case GEX_OP_FCAS:                              \
        return old == a ? b : old;                   \
      case GEX_OP_GET:                               \
        return old;                                  \
      default:                                       \
        return bitwise_##S(op, old, a);              \
    }                                                \
  }
#define DEFINE_INTEGER_MODEL(S, T, W)                                              \
  static int is_nan_##S(T x) { return (void)x, 0; }                                \
  static T bitwise_##S(gex_OP_t op, T old, T a) {                                  \
    if (op & BOTH(GEX_OP_AND)) return (T)(old & a);                                \
    return op & BOTH(GEX_OP_OR) ? (T)(old | a) : (T)(old ^ a);                     \
  }                                                                                \
  DEFINE_MODEL(S, T, W)                                                            \
  static T value_##S(struct worker* worker) {                                      \
    static const uint64_t edges[] = {0,                                            \
                                     1,                                            \
                                     2,                                            \
                                     0x7F,                                         \
                                     0x7FFFFFFF,                                   \
                                     0x80000000,                                   \
                                     0xFFFFFFFF,                                   \
                                     0x7FFFFFFFFFFFFFFF,                           \
                                     0x8000000000000000,                           \
                                     UINT64_MAX};                                  \
    return (T)(below(worker, 2) ? edges[below(worker, 10)] : next_random(worker)); \
  }                                                                                \
  static int is_equal_##S(T x, T y) { return x == y; }
#define DEFINE_FLOAT_MODEL(S, T)                                                             \
  static int is_nan_##S(T x) { return x != x; }                                              \
  static T bitwise_##S(gex_OP_t op, T old, T a) {                                            \
    (void)op, (void)a;                                                                       \
    return old;                                                                              \
  }                                                                                          \
  DEFINE_MODEL(S, T, T)                                                                      \
  static T value_##S(struct worker* worker) {                                                \
    static const double edges[] = {0.0, -0.0, 1, -1, 0.5, 1e30, -1e-30, INFINITY};           \
    return (T)(below(worker, 2) ? edges[below(worker, 8)] : below(worker, 1000) / 8.0 - 50); \
  }                                                                                          \
  /* The specification does not define which of two zeros is the minimum. */                 \
  static int is_equal_##S(T x, T y) { return x == y || (x != x && y != y); }
DEFINE_INTEGER_MODEL(I32, int32_t, uint32_t)
DEFINE_INTEGER_MODEL(U32, uint32_t, uint32_t)
DEFINE_INTEGER_MODEL(I64, int64_t, uint64_t)
DEFINE_INTEGER_MODEL(U64, uint64_t, uint64_t)
DEFINE_FLOAT_MODEL(FLT, float)
DEFINE_FLOAT_MODEL(DBL, double)

/* An operation that is a constant for the compiler, and one that is not. */
#define KNOWN(S, OP)                                                                            \
  case OP:                                                                                      \
    return is_nbi            ? (void)gex_AD_OpNBI_##S(ad, result, rank, word, OP, a, b, flags), \
           GEX_EVENT_INVALID : gex_AD_OpNB_##S(ad, result, rank, word, OP, a, b, flags);
#define KNOWN_NUMBERS(S) \
  KNOWN(S, GEX_OP_ADD)   \
  KNOWN(S, GEX_OP_SUB)   \
  KNOWN(S, GEX_OP_MULT)  \
  KNOWN(S, GEX_OP_MIN)   \
  KNOWN(S, GEX_OP_MAX)   \
  KNOWN(S, GEX_OP_INC)   \
  KNOWN(S, GEX_OP_DEC)   \
  KNOWN(S, GEX_OP_SET)   \
  KNOWN(S, GEX_OP_CAS)   \
  KNOWN(S, GEX_OP_FADD)  \
  KNOWN(S, GEX_OP_FSUB)  \
  KNOWN(S, GEX_OP_FMULT) \
  KNOWN(S, GEX_OP_FMIN)  \
  KNOWN(S, GEX_OP_FMAX)  \
  KNOWN(S, GEX_OP_FINC)  \
  KNOWN(S, GEX_OP_FDEC)  \
  KNOWN(S, GEX_OP_SWAP)  \
  KNOWN(S, GEX_OP_FCAS)  \
  KNOWN(S, GEX_OP_GET)
#define KNOWN_BITWISE(S) \
  KNOWN(S, GEX_OP_AND)   \
  KNOWN(S, GEX_OP_OR)    \
  KNOWN(S, GEX_OP_XOR)   \
  KNOWN(S, GEX_OP_FAND)  \
  KNOWN(S, GEX_OP_FOR)   \
  KNOWN(S, GEX_OP_FXOR)
#define NO_BITWISE(S)

#define DEFINE_RANDOM_OPERATIONS(S, T, TYPE, OPS, BITWISE)                                         \
  static gex_Event_t known_##S(gex_AD_t ad, T* result, gex_Rank_t rank, void* word, gex_OP_t op,   \
                               T a, T b, gex_Flags_t flags, int is_nbi) {                          \
    switch (op) {                                                                                  \
      KNOWN_NUMBERS(S)                                                                             \
      BITWISE(S)                                                                                   \
      default:                                                                                     \
        abort();                                                                                   \
    }                                                                                              \
  }                                                                                                \
  static void random_##S(struct worker* worker, const gex_AD_t* domains) {                         \
    T model[kMostRanks];                                                                           \
    for (gex_Rank_t rank = 0; rank < size; ++rank) model[rank] = 0;                                \
    for (unsigned int round = 0; round < rounds; ++round) {                                        \
      const unsigned int number = below(worker, kOps);                                             \
      const gex_OP_t op = every_op[number];                                                        \
      const gex_Rank_t owner = below(worker, size);                                                \
      const gex_AD_t ad = domains[below(worker, 2)];                                               \
      gex_Flags_t flags = some_flags(worker);                                                      \
      gex_Rank_t rank = owner;                                                                     \
      T a = value_##S(worker), b = value_##S(worker), untouched = value_##S(worker);               \
      T result = untouched;                                                                        \
      const T old = model[owner];                                                                  \
      const int fetches = op >= GEX_OP_FAND;                                                       \
      void* const word = own_word(worker, owner, TYPE);                                            \
      gex_Event_t event = GEX_EVENT_INVALID;                                                       \
      if (!(op & (OPS))) continue;                                                                 \
      __atomic_store_n(&tried[TYPE][number], 1, __ATOMIC_RELAXED);                                 \
      if (below(worker, 2)) a = old;                                                               \
      if (below(worker, 3) == 0)                                                                   \
        flags |= GEX_FLAG_RANK_IS_JOBRANK;                                                         \
      else                                                                                         \
        rank = gex_TM_TranslateJobrankToRank(gex_AD_QueryTM(ad), owner);                           \
      switch (below(worker, 4)) {                                                                  \
        case 0:                                                                                    \
          event = gex_AD_OpNB_##S(ad, fetches ? &result : NULL, rank, word, op, a, b, flags);      \
          break;                                                                                   \
        case 1:                                                                                    \
          CHECK(gex_AD_OpNBI_##S(ad, &result, rank, word, op, a, b, flags) == 0);                  \
          break;                                                                                   \
        case 2:                                                                                    \
          event = known_##S(ad, &result, rank, word, op, a, b, flags, 0);                          \
          break;                                                                                   \
        default:                                                                                   \
          known_##S(ad, &result, rank, word, op, a, b, flags, 1);                                  \
          break;                                                                                   \
      }                                                                                            \
      CHECK(event != GEX_EVENT_NO_OP);                                                             \
      if (below(worker, 2)) {                                                                      \
        gex_Event_Wait(event);                                                                     \
      } else {                                                                                     \
        while (gex_Event_Test(event) != GASNET_OK) gasnett_sched_yield();                          \
      }                                                                                            \
      gex_NBI_Wait(op == GEX_OP_GET ? GEX_EC_GET : op == GEX_OP_SET ? GEX_EC_PUT : GEX_EC_RMW, 0); \
      if (fetches)                                                                                 \
        CHECK(is_equal_##S(result, old));                                                          \
      else                                                                                         \
        CHECK(memcmp(&result, &untouched, sizeof result) == 0);                                    \
      model[owner] = model_##S(op, old, a, b);                                                     \
      if (below(worker, 8) != 0) continue;                                                         \
      gex_Event_Wait(gex_AD_OpNB_##S(domains[0], &result, owner, word, GEX_OP_GET, 0, 0, 0));      \
      CHECK(is_equal_##S(result, model[owner]));                                                   \
    }                                                                                              \
    for (gex_Rank_t rank = 0; rank < size; ++rank) {                                               \
      T result = 0;                                                                                \
      gex_Event_Wait(gex_AD_OpNB_##S(domains[0], &result, rank, own_word(worker, rank, TYPE),      \
                                     GEX_OP_GET, 0, 0, 0));                                        \
      CHECK(is_equal_##S(result, model[rank]));                                                    \
    }                                                                                              \
  }
DEFINE_RANDOM_OPERATIONS(I32, int32_t, 0, INTEGER_OPS, KNOWN_BITWISE)
DEFINE_RANDOM_OPERATIONS(U32, uint32_t, 1, INTEGER_OPS, KNOWN_BITWISE)
DEFINE_RANDOM_OPERATIONS(I64, int64_t, 2, INTEGER_OPS, KNOWN_BITWISE)
DEFINE_RANDOM_OPERATIONS(U64, uint64_t, 3, INTEGER_OPS, KNOWN_BITWISE)
DEFINE_RANDOM_OPERATIONS(FLT, float, 4, FLOAT_OPS, NO_BITWISE)
DEFINE_RANDOM_OPERATIONS(DBL, double, 5, FLOAT_OPS, NO_BITWISE)

static const gex_DT_t types[kTypes] = {GEX_DT_I32, GEX_DT_U32, GEX_DT_I64,
                                       GEX_DT_U64, GEX_DT_FLT, GEX_DT_DBL};
static gex_AD_t domains[kTypes][2]; /* of both teams */

/* The guard is a lock: only one thread at a time may run the two calls in the middle. */
static void guarded_step(gex_AD_t ad, gex_Rank_t target) {
  struct shared* const shared = shared_of(target);
  uint64_t previous = 1, value = 0;
  while (previous != 0) {
    gex_Event_Wait(
        gex_AD_OpNB_U64(ad, &previous, target, &shared->guard, GEX_OP_FCAS, 0, 1, GEX_FLAG_AD_ACQ));
    if (previous != 0) gasnett_sched_yield();
  }
  gex_RMA_GetBlocking(team, &value, target, &shared->guarded, 8, 0);
  ++value;
  gex_RMA_PutBlocking(team, target, &shared->guarded, &value, 8, 0);
  gex_Event_Wait(
      gex_AD_OpNB_U64(ad, NULL, target, &shared->guard, GEX_OP_SET, 0, 0, GEX_FLAG_AD_REL));
}

struct sums {
  uint64_t added, swapped_in, swapped_out, guarded, last_count;
};
static void contend(struct worker* worker, gex_Rank_t target, struct sums* sums) {
  struct shared* const shared = shared_of(target);
  const gex_AD_t u64 = domains[3][0], i32 = domains[0][0], dbl = domains[5][0], flt = domains[4][0];
  const uint64_t value = next_random(worker) >> 8;
  uint64_t before = 0, swapped = 0;
  gex_Event_t events[3];
  events[0] = gex_AD_OpNB_U64(u64, NULL, target, &shared->added, GEX_OP_ADD, value, 0, 0);
  events[1] = gex_AD_OpNB_U64(u64, &before, target, &shared->counted, GEX_OP_FINC, 0, 0, 0);
  events[2] = gex_AD_OpNB_U64(u64, &swapped, target, &shared->swapped, GEX_OP_SWAP, value, 0, 0);
  gex_AD_OpNBI_U64(u64, NULL, target, &shared->most, GEX_OP_MAX, value, 0, 0);
  gex_AD_OpNBI_U64(u64, NULL, target, &shared->least, GEX_OP_MIN, value, 0, 0);
  gex_AD_OpNBI_U64(u64, NULL, target, &shared->bits, GEX_OP_XOR, value, 0, 0);
  gex_AD_OpNBI_U64(u64, NULL, target, &shared->product, GEX_OP_MULT, 3, 0, 0);
  gex_AD_OpNBI_I32(i32, NULL, target, &shared->small, GEX_OP_SUB, 3, 0, 0);
  gex_AD_OpNBI_DBL(dbl, NULL, target, &shared->real, GEX_OP_ADD, 0.5, 0, 0);
  gex_AD_OpNBI_FLT(flt, NULL, target, &shared->real_small, GEX_OP_DEC, 0, 0, 0);
  gex_Event_WaitAll(events, 3, 0);
  gex_NBI_Wait(GEX_EC_RMW, 0);
  CHECK(before >= sums->last_count);
  sums->last_count = before + 1;
  sums->added += value;
  sums->swapped_in += value;
  sums->swapped_out += swapped;
  if (below(worker, 8) == 0) {
    guarded_step(u64, target);
    ++sums->guarded;
  }
}

/* Many operations in sequence, where each takes nanoseconds. */
static uint64_t storm(gex_Rank_t target) {
  struct shared* const shared = shared_of(target);
  void* mapped = NULL;
  uint64_t steps = rounds;
  gex_Event_Wait(gex_EP_QueryBoundSegmentNB(team, target, NULL, &mapped, NULL, 0));
  if (mapped) steps = 400000;
  for (uint64_t i = 0; i < steps; ++i) {
    gex_AD_OpNBI_DBL(domains[5][0], NULL, target, &shared->storm, GEX_OP_ADD, 1, 0, 0);
    if (i % 64 == 63) gex_NBI_Wait(GEX_EC_RMW, 0);
  }
  gex_NBI_Wait(GEX_EC_RMW, 0);
  return steps;
}

/* The operations of the threads of this rank on the words of rank 0. */
struct totals {
  uint64_t steps, added, bits, swapped_in, swapped_out, most, least, guarded, storm;
};
static struct totals totals[kMostThreads];

static void* work(void* argument) {
  struct worker* const worker = argument;
  worker->random = 88172645463325252u + 7919u * (me * threads + worker->thread);
  random_I32(worker, domains[0]);
  random_U32(worker, domains[1]);
  random_I64(worker, domains[2]);
  random_U64(worker, domains[3]);
  random_FLT(worker, domains[4]);
  random_DBL(worker, domains[5]);
  return NULL;
}

static void* work_together(void* argument) {
  struct worker* const worker = argument;
  struct totals* const total = &totals[worker->thread];
  struct sums sums = {0, 0, 0, 0, 0};
  total->least = UINT64_MAX;
  total->storm = storm(0);
  for (unsigned int round = 0; round < rounds; ++round) {
    const uint64_t before = sums.added;
    uint64_t value;
    contend(worker, 0, &sums);
    value = sums.added - before;
    total->bits ^= value;
    if (value > total->most) total->most = value;
    if (value < total->least) total->least = value;
    ++total->steps;
  }
  total->added = sums.added;
  total->swapped_in = sums.swapped_in;
  total->swapped_out = sums.swapped_out;
  total->guarded = sums.guarded;
  return NULL;
}

static void run(void* (*body)(void*), struct worker* workers) {
#ifdef GASNET_PAR
  pthread_t started[kMostThreads];
  for (unsigned int i = 0; i < threads; ++i)
    CHECK(pthread_create(&started[i], NULL, body, &workers[i]) == 0);
  for (unsigned int i = 0; i < threads; ++i) pthread_join(started[i], NULL);
#else
  CHECK(threads == 1);
  body(&workers[0]);
#endif
}

/* Sends rank 0 the totals of this rank. Rank 0 compares their sum with its words. */
static void check_words(void) {
  struct totals* const at_zero = (struct totals*)(void*)(segments[0] + 2048);
  struct totals mine = {0, 0, 0, 0, 0, 0, UINT64_MAX, 0, 0};
  for (unsigned int i = 0; i < threads; ++i) {
    mine.steps += totals[i].steps;
    mine.added += totals[i].added;
    mine.bits ^= totals[i].bits;
    mine.swapped_in += totals[i].swapped_in;
    mine.swapped_out += totals[i].swapped_out;
    mine.storm += totals[i].storm;
    mine.guarded += totals[i].guarded;
    if (totals[i].most > mine.most) mine.most = totals[i].most;
    if (totals[i].least < mine.least) mine.least = totals[i].least;
  }
  gex_RMA_PutBlocking(team, 0, &at_zero[me], &mine, sizeof mine, 0);
  barrier();
  if (me == 0) {
    const struct shared* const shared = shared_of(0);
    struct totals all = {0, 0, 0, 0, 0, 0, UINT64_MAX, 0, 0};
    uint64_t product = 1;
    for (gex_Rank_t rank = 0; rank < size; ++rank) {
      all.steps += at_zero[rank].steps;
      all.added += at_zero[rank].added;
      all.bits ^= at_zero[rank].bits;
      all.swapped_in += at_zero[rank].swapped_in;
      all.swapped_out += at_zero[rank].swapped_out;
      all.storm += at_zero[rank].storm;
      all.guarded += at_zero[rank].guarded;
      if (at_zero[rank].most > all.most) all.most = at_zero[rank].most;
      if (at_zero[rank].least < all.least) all.least = at_zero[rank].least;
    }
    for (uint64_t i = 0; i < all.steps; ++i) product *= 3;
    CHECK(all.steps == (uint64_t)size * threads * rounds);
    CHECK(shared->added == all.added);
    CHECK(shared->counted == all.steps);
    CHECK(shared->swapped + all.swapped_out == all.swapped_in);
    CHECK(shared->guarded == all.guarded && shared->guard == 0);
    CHECK(shared->most == all.most);
    CHECK(shared->least == all.least);
    CHECK(shared->bits == all.bits);
    CHECK(shared->product == product);
    CHECK((uint32_t)shared->small == (uint32_t)(0 - 3 * all.steps));
    CHECK(shared->real == 0.5 * (double)all.steps);
    CHECK(shared->storm == (double)all.storm);
    CHECK(shared->real_small == -(float)all.steps);
  }
  barrier();
}

static void check_bits(void) {
  static const uint64_t wide[] = {0x8000000000000000, 0x7FF0000000000001, 0xFFF8000000012345,
                                  0x7FF8000000000000, 1};
  static const uint32_t narrow[] = {0x80000000, 0x7F800001, 0xFFC12345, 0x7FC00000, 1};
  const struct worker first = {0, 0};
  for (gex_Rank_t rank = 0; rank < size; ++rank) {
    for (int i = 0; i < 5; ++i) {
      double value, fetched = 0, previous = 0;
      float small, small_fetched = 0, small_previous = 0;
      char* const word = own_word(&first, rank, 5);
      char* const small_word = own_word(&first, rank, 4);
      memcpy(&value, &wide[i], 8);
      memcpy(&small, &narrow[i], 4);
      gex_Event_Wait(gex_AD_OpNB_DBL(domains[5][0], NULL, rank, word, GEX_OP_SET, value, 0, 0));
      gex_Event_Wait(gex_AD_OpNB_DBL(domains[5][0], &fetched, rank, word, GEX_OP_GET, 0, 0, 0));
      gex_Event_Wait(
          gex_AD_OpNB_DBL(domains[5][0], &previous, rank, word, GEX_OP_SWAP, value, 0, 0));
      CHECK(memcmp(&fetched, &wide[i], 8) == 0 && memcmp(&previous, &wide[i], 8) == 0);
      gex_Event_Wait(
          gex_AD_OpNB_FLT(domains[4][0], NULL, rank, small_word, GEX_OP_SET, small, 0, 0));
      gex_Event_Wait(
          gex_AD_OpNB_FLT(domains[4][0], &small_fetched, rank, small_word, GEX_OP_GET, 0, 0, 0));
      gex_Event_Wait(gex_AD_OpNB_FLT(domains[4][0], &small_previous, rank, small_word, GEX_OP_SWAP,
                                     small, 0, 0));
      CHECK(memcmp(&small_fetched, &narrow[i], 4) == 0 &&
            memcmp(&small_previous, &narrow[i], 4) == 0);
    }
  }
}

static void check_queries(void) {
  gex_AD_t ad = GEX_AD_INVALID;
  int data = 0;
  gex_AD_Create(&ad, backwards, GEX_DT_U32, GEX_OP_ADD | GEX_OP_GET, GEX_FLAG_AD_FAVOR_REMOTE);
  CHECK(ad != GEX_AD_INVALID && gex_AD_QueryTM(ad) == backwards);
  CHECK(gex_AD_QueryDT(ad) == GEX_DT_U32 && gex_AD_QueryOps(ad) == (GEX_OP_ADD | GEX_OP_GET));
  CHECK(gex_AD_QueryFlags(ad) == GEX_FLAG_AD_FAVOR_REMOTE && gex_AD_QueryCData(ad) == NULL);
  gex_AD_SetCData(ad, &data);
  CHECK(gex_AD_QueryCData(ad) == &data);
  gex_AD_Destroy(ad);
}

static void misuse(const char* how) {
  gex_AD_t ad = GEX_AD_INVALID;
  const gex_Rank_t peer = size - 1 - me; /* the other of two ranks */
  if (!strcmp(how, "illegal")) gex_AD_Create(&ad, team, GEX_DT_DBL, GEX_OP_ADD | GEX_OP_XOR, 0);
  if (!strcmp(how, "pair")) gex_AD_Create(&ad, gex_TM_Pair(endpoint, 0), GEX_DT_U64, GEX_OP_ADD, 0);
  gex_AD_Create(&ad, team, GEX_DT_U64, GEX_OP_ADD, 0);
  if (!strcmp(how, "operation")) {
    volatile gex_OP_t op = GEX_OP_USER;
    gex_Event_Wait(gex_AD_OpNB_U64(ad, NULL, peer, segments[peer], op, 1, 0, 0));
  }
  gex_Event_Wait(
      gex_AD_OpNB_U64(ad, NULL, peer, segments[peer] + ((size_t)1 << 20), GEX_OP_ADD, 1, 0, 0));
  gasnet_exit(0);
}

int main(int argc, char** argv) {
  struct worker workers[kMostThreads];
  start_client("RATOMIC_PROBE", &argc, &argv, NULL, 0, 0);
  CHECK(argc >= 2 && size <= kMostRanks);
  CHECK(gex_Segment_Attach(&segment, team, (uintptr_t)1 << 16) == GASNET_OK);
  for (gex_Rank_t peer = 0; peer < size; ++peer)
    CHECK(gex_Segment_QueryBound(team, peer, (void**)&segments[peer], NULL, NULL) == 0);
  if (argc == 2) misuse(argv[1]);
  threads = (unsigned int)atoi(argv[1]);
  rounds = (unsigned int)atoi(argv[2]);
  CHECK(threads >= 1 && threads <= kMostThreads);
  gex_TM_Split(&backwards, team, 0, (int)(size - me), NULL, 0, 0);
  for (int type = 0; type < kTypes; ++type)
    for (int which = 0; which < 2; ++which)
      gex_AD_Create(&domains[type][which], which ? backwards : team, types[type],
                    type < 4 ? INTEGER_OPS : FLOAT_OPS, 0);
  check_queries();
  for (unsigned int i = 0; i < threads; ++i) workers[i].thread = i;
  shared_of(me)->least = UINT64_MAX;
  shared_of(me)->product = 1;
  barrier();

  run(work, workers);
  if (rounds >= 200)
    for (int type = 0; type < kTypes; ++type)
      for (int number = 0; number < kOps; ++number)
        CHECK(tried[type][number] || (type >= 4 && (every_op[number] & BOTH(ALL_BITWISE))));
  run(work_together, workers);
  barrier();
  check_words();
  if (me == 0) check_bits();
  barrier();
  for (int type = 0; type < kTypes; ++type)
    for (int which = 0; which < 2; ++which) gex_AD_Destroy(domains[type][which]);
  if (me == 0) {
    printf("atomics of %u ranks are good\n", size);
    fflush(stdout);
  }
  barrier(); /* the first rank to exit ends the job */
  gasnet_exit(0);
}
