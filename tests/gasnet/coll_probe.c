/* coll_probe.c: collectives of several teams, in flight together, compared with a model.
 *
 * coll_probe random <calls> <seed>   every type and operation, random lengths, roots and orders
 * coll_probe compute                 reductions and barriers complete while all ranks compute
 * coll_probe compute-alone           the same in more and shorter rounds
 * coll_probe order                   a call starts although earlier ones end in another order
 * coll_probe pieces                  the calls of gasnet_coll.h that are not in the specification
 * coll_probe sums                    prints a floating-point sum, which is the same in every run
 * coll_probe idle                    waiting ranks sleep while another computes
 * coll_probe barriers                many barriers, whose messages can be counted
 * coll_probe late                    a rank that arrives last does not wait
 * coll_probe ahead                   a root cannot send what others have no room for
 * coll_probe slots                   ranks that are late find what was meant for them
 * coll_probe threads <rounds>        threads with a team each make teams and use them (PAR only)
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <gasnet.h>
#include <gasnet_coll.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include "checks.h"

enum { kTeams = 4, kMostInFlight = 40, kMostItems = 30000, kMostRanks = 64 };

static uint64_t mixed(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}
/* States of random numbers. The first is the same in all ranks if they draw equally often; the
 * second is that of this rank. */
static uint64_t common_state, own_state;
static uint64_t common(uint64_t below) { return mixed(common_state++) % below; }
static uint64_t own(uint64_t below) { return mixed(own_state++) % below; }

/* ------------------------------------------------------------------------- operations of clients
 */

/* x -> a * x + b. The composition of two maps does not commute. */
struct Map {
  uint32_t a, b, filler;
};

static void compose(const void* left, void* right, size_t count, const void* cdata) {
  const struct Map* const f = left;
  struct Map* const g = right;
  CHECK(cdata == (void*)&me);
  for (size_t i = 0; i < count; ++i) {
    g[i].b = f[i].a * g[i].b + f[i].b;
    g[i].a *= f[i].a;
  }
}

static void add_numbers(const void* left, void* right, size_t count, const void* cdata) {
  /* Unsigned: sums wrap. */
  const uint64_t* const x = left;
  uint64_t* const y = right;
  CHECK(cdata == (void*)&me);
  for (size_t i = 0; i < count; ++i) y[i] += x[i];
}

/* ------------------------------------------------------------------------------------ the model */

enum { kBroadcast, kToOne, kToAll, kBarrier, kKinds };

struct Call {
  int kind, team;
  uint64_t number;
  gex_Rank_t root;
  gex_DT_t type;
  gex_OP_t operation;
  gex_Coll_ReduceFn_t function;
  size_t item_bytes, count;
  int in_place;
  char *source, *destination;
  gex_Event_t event;
};

static gex_TM_t teams[kTeams];

/* Item `index` of the contribution of a rank (of the job). Items are small whole numbers, so the
 * order of floating-point operations does not matter. */
static void make_item(const struct Call* call, gex_Rank_t rank, size_t index, void* item) {
  const uint64_t random = mixed(call->number * 1000003 + rank * 7919 + index);
  const int is_product = call->operation == GEX_OP_MULT;
  const int is_float = (call->type & (GEX_DT_FLT | GEX_DT_DBL)) != 0;
  const int64_t small =
      is_product && is_float ? (random % 2 ? -1 : 2) : (int64_t)(random % 1000) - 500;
  const uint64_t whole = is_float ? (uint64_t)small : random;
  if (call->type == GEX_DT_I32 || call->type == GEX_DT_U32) {
    const uint32_t value = (uint32_t)whole;
    memcpy(item, &value, sizeof value);
  } else if (call->type == GEX_DT_FLT) {
    const float value = (float)small;
    memcpy(item, &value, sizeof value);
  } else if (call->type == GEX_DT_DBL) {
    const double value = (double)small;
    memcpy(item, &value, sizeof value);
  } else if (call->type == GEX_DT_USER) {
    const struct Map value = {(uint32_t)random | 1, (uint32_t)(random >> 32), 17};
    memcpy(item, &value, sizeof value);
  } else if (call->item_bytes == 1) {
    *(char*)item = (char)random;
  } else {
    memcpy(item, &whole, sizeof whole);
  }
}

#define COMBINE(TYPE, BITS)                    \
  {                                            \
    TYPE x, y;                                 \
    memcpy(&x, left, sizeof x);                \
    memcpy(&y, right, sizeof y);               \
    switch (call->operation) {                 \
      case GEX_OP_ADD:                         \
        y = (TYPE)((BITS)x + (BITS)y);         \
        break;                                 \
      case GEX_OP_MULT:                        \
        y = (TYPE)((BITS)x * (BITS)y);         \
        break;                                 \
      case GEX_OP_MIN:                         \
        y = x < y ? x : y;                     \
        break;                                 \
      case GEX_OP_MAX:                         \
        y = x > y ? x : y;                     \
        break;                                 \
      case GEX_OP_AND:                         \
        y = (TYPE)((uint64_t)x & (uint64_t)y); \
        break;                                 \
      case GEX_OP_OR:                          \
        y = (TYPE)((uint64_t)x | (uint64_t)y); \
        break;                                 \
      default:                                 \
        y = (TYPE)((uint64_t)x ^ (uint64_t)y); \
        break;                                 \
    }                                          \
    memcpy(right, &y, sizeof y);               \
  }

static void combine_item(const struct Call* call, const void* left, void* right) {
  if (call->operation == GEX_OP_USER_NC) {
    compose(left, right, 1, &me);
  } else if (call->operation == GEX_OP_USER) {
    add_numbers(left, right, 1, &me);
  } else {
    switch (call->type) {
      case GEX_DT_I32:
        COMBINE(int32_t, uint32_t) break;
      case GEX_DT_U32:
        COMBINE(uint32_t, uint32_t) break;
      case GEX_DT_I64:
        COMBINE(int64_t, uint64_t) break;
      case GEX_DT_U64:
        COMBINE(uint64_t, uint64_t) break;
      case GEX_DT_FLT:
        COMBINE(float, float) break;
      default:
        COMBINE(double, double) break;
    }
  }
}

static void expect(const struct Call* call) {
  const gex_TM_t tm = teams[call->team];
  if (call->kind == kToOne && gex_TM_QueryRank(tm) != call->root) return;
  for (size_t i = 0; i < call->count; ++i) {
    struct Map wanted, next; /* Map is the largest type of an item, and aligned */
    if (call->kind == kBroadcast) {
      make_item(call, gex_TM_TranslateRankToJobrank(tm, call->root), i, &wanted);
    } else {
      make_item(call, gex_TM_TranslateRankToJobrank(tm, 0), i, &wanted);
      for (gex_Rank_t rank = 1; rank < gex_TM_QuerySize(tm); ++rank) {
        make_item(call, gex_TM_TranslateRankToJobrank(tm, rank), i, &next);
        combine_item(call, &wanted, &next);
        wanted = next;
      }
    }
    if (memcmp(call->destination + i * call->item_bytes, &wanted, call->item_bytes) != 0) {
      fprintf(stderr,
              "rank %u: call %llu, kind %d, team %d, type 0x%x, operation 0x%x, item %zu of %zu\n",
              me, (unsigned long long)call->number, call->kind, call->team, call->type,
              call->operation, i, call->count);
      abort();
    }
  }
}

/* ------------------------------------------------------------------------------------ the calls */

static void draw_operation(struct Call* call) {
  static const gex_DT_t types[] = {GEX_DT_I32, GEX_DT_U32, GEX_DT_I64,
                                   GEX_DT_U64, GEX_DT_FLT, GEX_DT_DBL};
  static const size_t bytes[] = {4, 4, 8, 8, 4, 8};
  static const gex_OP_t operations[] = {GEX_OP_ADD, GEX_OP_MULT, GEX_OP_MIN, GEX_OP_MAX,
                                        GEX_OP_AND, GEX_OP_OR,   GEX_OP_XOR};
  call->function = NULL;
  if (common(5) == 0) {
    const int composes = (int)common(2);
    call->type = composes ? GEX_DT_USER : GEX_DT_I64;
    call->item_bytes = composes ? sizeof(struct Map) : 8;
    call->operation = composes ? GEX_OP_USER_NC : GEX_OP_USER;
    call->function = composes ? compose : add_numbers;
    return;
  }
  const uint64_t type = common(6);
  call->type = types[type];
  call->item_bytes = bytes[type];
  call->operation = operations[common(type < 4 ? 7 : 4)];
}

static void start(struct Call* call, uint64_t number) {
  memset(call, 0, sizeof *call);
  call->number = number;
  call->kind = (int)common(kKinds);
  call->team = (int)common(kTeams);
  const gex_TM_t tm = teams[call->team];
  /* Members draw the same number, though their teams have different sizes. */
  const uint64_t random = common(1u << 30);
  call->root = (gex_Rank_t)(random % gex_TM_QuerySize(tm));
  call->type = GEX_DT_U64;
  call->item_bytes = 1;
  if (call->kind == kToOne || call->kind == kToAll) draw_operation(call);
  const uint64_t how_long = common(10);
  call->count = how_long < 7   ? 1 + common(20)
                : how_long < 9 ? 1 + common(1000)
                               : 1 + common(kMostItems);
  call->in_place = (int)common(2);
  if (call->kind == kBarrier) {
    call->event = gex_Coll_BarrierNB(tm, 0);
    return;
  }
  if (call->kind == kBroadcast && common(20) == 0) call->count = 0;
  const size_t length = call->count * call->item_bytes;
  call->source = malloc(length + 1);
  call->destination = call->in_place ? call->source : malloc(length + 1);
  for (size_t i = 0; i < call->count; ++i)
    make_item(call, me, i, call->source + i * call->item_bytes);
  switch (call->kind) {
    case kBroadcast:
      call->event =
          gex_Coll_BroadcastNB(tm, call->root, call->destination, call->source, length, 0);
      break;
    case kToOne:
      call->event = gex_Coll_ReduceToOneNB(tm, call->root, call->destination, call->source,
                                           call->type, call->item_bytes, call->count,
                                           call->operation, call->function, &me, 0);
      break;
    default:
      call->event =
          gex_Coll_ReduceToAllNB(tm, call->destination, call->source, call->type, call->item_bytes,
                                 call->count, call->operation, call->function, &me, 0);
  }
}

static void finish(struct Call* call) {
  if (call->kind == kBarrier) return;
  expect(call);
  if (!call->in_place) free(call->source);
  free(call->destination);
}

static void run_random(uint64_t calls, uint64_t seed) {
  static struct Call in_flight[kMostInFlight];
  size_t count = 0;
  common_state = seed * 1000000007u;
  own_state = common_state + 977 * (me + 1);
  for (uint64_t number = 0; number < calls || count != 0;) {
    if (count < kMostInFlight && number < calls && (count == 0 || own(3) != 0)) {
      start(&in_flight[count++], number++);
      continue;
    }
    /* Completes one, in an order that differs by rank; sometimes all. */
    if (own(8) == 0) {
      gex_Event_t events[kMostInFlight];
      for (size_t i = 0; i < count; ++i) events[i] = in_flight[i].event;
      gex_Event_WaitAll(events, count, 0);
      for (size_t i = 0; i < count; ++i) finish(&in_flight[i]);
      count = 0;
      continue;
    }
    const size_t one = own(count);
    if (own(2))
      gex_Event_Wait(in_flight[one].event);
    else if (gex_Event_Test(in_flight[one].event) != GASNET_OK) {
      gasnet_AMPoll();
      continue;
    }
    finish(&in_flight[one]);
    in_flight[one] = in_flight[--count];
  }
}

/* ----------------------------------------------------------------------------------- other runs */

static void compute_ms(unsigned int milliseconds) {
  const gasnett_tick_t begin = gasnett_ticks_now();
  while (gasnett_ticks_to_ns(gasnett_ticks_now() - begin) < milliseconds * UINT64_C(1000000)) {
  }
}

/* How many of the events complete. Tests run no handlers, and few of many tests poll Portals. So
 * there is one test of each. */
static int complete_while_computing(gex_Event_t* events, int count, unsigned int milliseconds) {
  int completed = 0;
  compute_ms(milliseconds);
  for (int i = 0; i < count; ++i) {
    if (gex_Event_Test(events[i]) != GASNET_OK) continue;
    events[i] = GEX_EVENT_INVALID;
    ++completed;
  }
  gex_Event_WaitAll(events, (size_t)count, 0);
  return completed;
}

static void tell_others(uint64_t word) {
  for (gex_Rank_t rank = 1; rank < size; ++rank)
    gex_RMA_PutNBI(team, rank, segment_of(team, rank), &word, sizeof word, GEX_EVENT_NOW, 0);
}

/* Rank 0 starts its calls before the others, so it cannot receive their part in these calls. */
static int64_t completed_of_four(uint64_t round, unsigned int milliseconds) {
  int64_t number = me, sum = 0, at_root = 0;
  double real = me, largest = 0;
  const int64_t wanted = (int64_t)size * (size - 1) / 2;
  volatile uint64_t* const told = gex_Segment_QueryAddr(segment);
  gex_Event_t events[4];
  /* Rank 0 is connected to all others from now on. */
  if (me == 0) tell_others(0);
  gex_NBI_Wait(GEX_EC_PUT, 0);
  barrier();
  if (me != 0) GASNET_BLOCKUNTIL(*told == round);
  events[0] =
      gex_Coll_ReduceToAllNB(team, &sum, &number, GEX_DT_I64, 8, 1, GEX_OP_ADD, NULL, NULL, 0);
  events[1] =
      gex_Coll_ReduceToAllNB(team, &largest, &real, GEX_DT_DBL, 8, 1, GEX_OP_MAX, NULL, NULL, 0);
  events[2] = gex_Coll_BarrierNB(team, 0);
  events[3] = gex_Coll_ReduceToOneNB(team, 0, &at_root, &number, GEX_DT_I64, 8, 1, GEX_OP_ADD, NULL,
                                     NULL, 0);
  if (me == 0) tell_others(round);
  const int completed = complete_while_computing(events, 4, milliseconds);
  gex_NBI_Wait(GEX_EC_PUT, 0);
  CHECK(sum == wanted && largest == size - 1 && (me != 0 || at_root == wanted));
  return completed;
}

/* The least of some rounds, since one of the tests may have polled. */
static void run_compute(uint64_t rounds, unsigned int milliseconds) {
  int64_t own_least = 4, least = 0;
  for (uint64_t round = 1; round <= rounds; ++round) {
    const int64_t completed = completed_of_four(round, milliseconds);
    if (completed < own_least) own_least = completed;
  }
  gex_Event_Wait(gex_Coll_ReduceToAllNB(team, &least, &own_least, GEX_DT_I64, 8, 1, GEX_OP_MIN,
                                        NULL, NULL, 0));
  if (me == 0) printf("%d of 4 completed while %u ranks computed\n", (int)least, size);
}

/* Rank 1 is done with its second call before the first one, and starts the third call when the
 * first one is over. It must start at once, since rank 1 computes afterwards until rank 0 has the
 * result. */
static void run_order(void) {
  volatile uint64_t* const told = gex_Segment_QueryAddr(segment);
  for (uint64_t round = 1; round <= 20; ++round) {
    uint64_t first = 0, second = 0, number = me, sum = 0;
    const uint64_t words[2] = {2 * round, 2 * round + 1};
    const gasnett_tick_t begin = gasnett_ticks_now();
    gex_Event_t events[3];
    barrier();
    if (me == 1) {
      events[0] = gex_Coll_BroadcastNB(team, 0, &first, NULL, 8, 0);
      events[1] = gex_Coll_BroadcastNB(team, 1, &second, &round, 8, 0);
      while (*told != words[0]) {
      }
    } else {
      events[0] = gex_Coll_BroadcastNB(team, 0, &first, &round, 8, 0);
      events[1] = gex_Coll_BroadcastNB(team, 1, &second, NULL, 8, 0);
      compute_ms(5);
      gex_RMA_PutBlocking(team, 1, segment_of(team, 1), &words[0], 8, 0);
    }
    events[2] =
        gex_Coll_ReduceToAllNB(team, &sum, &number, GEX_DT_U64, 8, 1, GEX_OP_ADD, NULL, NULL, 0);
    if (me == 0) {
      gex_Event_Wait(events[2]);
      gex_RMA_PutBlocking(team, 1, segment_of(team, 1), &words[1], 8, 0);
      gex_Event_WaitAll(events, 2, 0);
    } else {
      while (*told != words[1])
        CHECK(gasnett_ticks_to_ns(gasnett_ticks_now() - begin) < UINT64_C(10000000000));
      gex_Event_WaitAll(events, 3, 0);
    }
    CHECK(first == round && second == round && sum == 1);
  }
  if (me == 0) printf("calls start in any order\n");
}

/* With more ranks than processors. A sleep is a voluntary context switch; a yield is not counted as
 * one. */
static void run_idle(void) {
  struct rusage before, after;
  uint64_t* const word = segment_of(team, (me + 1) % size);
  for (int way = 0; way < 4; ++way) {
    barrier();
    getrusage(RUSAGE_THREAD, &before);
    if (me == 0) compute_ms(300);
    gex_Event_t events[2] = {gex_Coll_BarrierNB(team, 0), GEX_EVENT_INVALID};
    if (way == 1) gex_Event_WaitSome(events, 2, 0);
    if (way == 2) gex_Event_WaitAll(events, 2, 0);
    if (way == 3) {
      gex_RMA_PutNBI(team, (me + 1) % size, word, &way, sizeof way, GEX_EVENT_DEFER, 0);
      gex_NBI_Wait(GEX_EC_ALL, 0);
    }
    gex_Event_Wait(events[0]);
    getrusage(RUSAGE_THREAD, &after);
    CHECK(me == 0 || after.ru_nvcsw - before.ru_nvcsw >= 3);
  }
  barrier();
  if (me == 0) printf("ranks have slept\n");
}

/* Broadcasts of vectors that are too long for anything but messages. All ranks but the root handle
 * messages, and take part late. Until then the received bytes are limited, and the root cannot
 * finish. */
static void run_ahead(void) {
  enum { kCalls = 64, kBytes = 256 << 10, kMost = 16 << 20, kPatienceMs = 300 };
  unsigned char* const vectors = malloc((size_t)kCalls * kBytes);
  gex_Event_t events[kCalls];
  for (size_t i = 0; i < (size_t)kCalls * kBytes; ++i)
    vectors[i] = (unsigned char)(me == 0 ? mixed(i) : 0);
  for (int is_one_call = 0; is_one_call < 2; ++is_one_call) {
    const int calls = is_one_call ? 1 : kCalls;
    const size_t bytes = (size_t)kCalls * kBytes / (size_t)calls;
    barrier();
    const struct mallinfo2 before = mallinfo2();
    if (me != 0) {
      const gasnett_tick_t begin = gasnett_ticks_now();
      while (gasnett_ticks_to_ns(gasnett_ticks_now() - begin) < kPatienceMs * UINT64_C(1000000)) {
        gasnet_AMPoll();
        const struct mallinfo2 now = mallinfo2();
        CHECK(now.uordblks + now.hblkhd < before.uordblks + before.hblkhd + kMost / 2);
        gasnett_sched_yield();
      }
    }
    for (int i = 0; i < calls; ++i)
      events[i] = gex_Coll_BroadcastNB(team, 0, vectors + (size_t)i * bytes,
                                       vectors + (size_t)i * bytes, bytes, 0);
    gex_Event_WaitAll(events, (size_t)calls, 0);
    for (size_t i = 0; i < (size_t)kCalls * kBytes; ++i)
      CHECK(vectors[i] == (unsigned char)mixed(i));
    if (me != 0) memset(vectors, 0, (size_t)kCalls * kBytes);
  }
  free(vectors);
  if (me == 0) printf("nobody of %u ranks was overrun\n", size);
}

/* Small collectives use few slots again and again. The last rank sleeps while the others could go
 * ahead; in the second half the root of the reductions does. */
static void run_slots(void) {
  enum { kCalls = 100, kLateUs = 200000 };
  uint64_t in[kCalls], out[kCalls];
  gex_Event_t events[kCalls];
  for (int is_reduction = 0; is_reduction < 2; ++is_reduction) {
    for (uint64_t i = 0; i < kCalls; ++i) {
      in[i] = is_reduction || me == 0 ? mixed(i) : 0;
      out[i] = 0;
    }
    barrier();
    if (me == (is_reduction ? 0 : size - 1)) usleep(kLateUs);
    for (int i = 0; i < kCalls; ++i)
      events[i] = is_reduction ? gex_Coll_ReduceToOneNB(team, 0, out + i, in + i, GEX_DT_U64, 8, 1,
                                                        GEX_OP_ADD, NULL, NULL, 0)
                               : gex_Coll_BroadcastNB(team, 0, out + i, in + i, 8, 0);
    gex_Event_WaitAll(events, kCalls, 0);
    for (uint64_t i = 0; i < kCalls; ++i)
      CHECK((is_reduction && me != 0) || out[i] == mixed(i) * (is_reduction ? size : 1));
  }
  barrier();
  if (me == 0) printf("no slot of %u ranks was overwritten\n", size);
}

static int compare_ticks(const void* a, const void* b) {
  const uint64_t x = *(const uint64_t*)a, y = *(const uint64_t*)b;
  return (x > y) - (x < y);
}

/* All others have notified while the last rank computes, so its wait finds a barrier that is over.
 */
static void run_late(void) {
  enum { kRounds = 21 };
  uint64_t waits_ns[kRounds];
  for (int round = 0; round < kRounds; ++round) {
    gasnet_barrier(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_notify(round, 0);
    if (me == size - 1) compute_ms(10);
    const gasnett_tick_t begin = gasnett_ticks_now();
    CHECK(gasnet_barrier_wait(round, 0) == GASNET_OK);
    waits_ns[round] = gasnett_ticks_to_ns(gasnett_ticks_now() - begin);
  }
  qsort(waits_ns, kRounds, sizeof *waits_ns, compare_ticks);
  if (me == size - 1 && waits_ns[kRounds / 2] < 500000)
    printf("the late rank did not wait\n");
  else if (me == size - 1)
    printf("not so: a late wait takes %lu ns\n", (unsigned long)waits_ns[kRounds / 2]);
}

/* The same sum again and again, with others in flight. It depends on the order of additions. */
static void run_sums(void) {
  enum { kItems = 8, kRounds = 60 };
  double numbers[kItems], sums[kRounds][kItems];
  gex_Event_t events[kRounds];
  for (int i = 0; i < kItems; ++i) {
    const uint64_t random = mixed(me * 100 + (unsigned int)i);
    numbers[i] = (random % 2 ? -1.0 : 1.0) * (double)(random >> 11) / (double)(1 << random % 23);
  }
  for (int round = 0; round < kRounds; ++round) {
    if (own(2)) compute_ms((unsigned int)own(2));
    events[round] = gex_Coll_ReduceToAllNB(team, sums[round], numbers, GEX_DT_DBL, 8, kItems,
                                           GEX_OP_ADD, NULL, NULL, 0);
  }
  gex_Event_WaitAll(events, kRounds, 0);
  for (int round = 1; round < kRounds; ++round)
    CHECK(memcmp(sums[round], sums[0], sizeof sums[0]) == 0);
  uint64_t hash = 0, bits;
  for (int i = 0; i < kItems; ++i) {
    memcpy(&bits, &sums[0][i], sizeof bits);
    hash = mixed(hash ^ bits);
  }
  uint64_t all_and = 0, all_or = 0;
  gex_Event_Wait(
      gex_Coll_ReduceToAllNB(team, &all_and, &hash, GEX_DT_U64, 8, 1, GEX_OP_AND, NULL, NULL, 0));
  gex_Event_Wait(
      gex_Coll_ReduceToAllNB(team, &all_or, &hash, GEX_DT_U64, 8, 1, GEX_OP_OR, NULL, NULL, 0));
  CHECK(all_and == hash && all_or == hash);
  if (me == 0) printf("sums %016llx\n", (unsigned long long)hash);
}

/* ------------------------------------------------------------- names beside the specification */

enum { kAhead = 6, kMostBytes = 40000 };

static char byte_of(int call, gex_Rank_t from, gex_Rank_t to, size_t index) {
  return (char)mixed((uint64_t)call * 1000003 + from * 7919 + to * 104729 + index);
}
static void fill(char* piece, int call, gex_Rank_t from, gex_Rank_t to, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) piece[i] = byte_of(call, from, to, i);
}
static void check_piece(const char* piece, int call, gex_Rank_t from, gex_Rank_t to, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) CHECK(piece[i] == byte_of(call, from, to, i));
}

/* One call after the other with every pair of flags, then several at once. */
static void run_pieces(void) {
  static const int in[] = {GASNET_COLL_IN_NOSYNC, GASNET_COLL_IN_MYSYNC, GASNET_COLL_IN_ALLSYNC};
  static const int out[] = {GASNET_COLL_OUT_NOSYNC, GASNET_COLL_OUT_MYSYNC,
                            GASNET_COLL_OUT_ALLSYNC};
  char *source[kAhead], *destination[kAhead];
  gasnet_coll_handle_t handles[kAhead];
  for (int i = 0; i < kAhead; ++i) {
    source[i] = malloc((size_t)size * kMostBytes);
    destination[i] = malloc((size_t)size * kMostBytes);
  }
  CHECK(GASNET_TEAM_ALL == team);
  for (int round = 0; round < 40; ++round) {
    const int flags = round < 18 ? in[round / 2 % 3] | out[round / 6]
                                 : GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC;
    const size_t bytes = round % 4 == 0 ? common(kMostBytes) : common(300);
    const gex_Rank_t root = (gex_Rank_t)common(size);
    barrier();
    for (int i = 0; i < kAhead; ++i) {
      const int call = round * kAhead + i;
      char *const s = source[i], *const d = destination[i];
      switch (call % 5) {
        case 0:
          fill(s, call, root, 0, bytes);
          handles[i] = gasnet_coll_broadcast_nb(team, d, root, s, bytes, flags);
          break;
        case 1:
          for (gex_Rank_t to = 0; to < size; ++to) fill(s + to * bytes, call, root, to, bytes);
          handles[i] = gasnet_coll_scatter_nb(team, d, root, s, bytes, flags);
          break;
        case 2:
          fill(s, call, me, root, bytes);
          handles[i] = gasnet_coll_gather_nb(team, root, d, s, bytes, flags);
          break;
        case 3:
          fill(s, call, me, 0, bytes);
          handles[i] = gasnet_coll_gather_all_nb(team, d, s, bytes, flags);
          break;
        default:
          for (gex_Rank_t to = 0; to < size; ++to) fill(s + to * bytes, call, me, to, bytes);
          handles[i] = gasnet_coll_exchange_nb(team, d, s, bytes, flags);
      }
      if (round < 18) gasnet_coll_wait_sync(handles[i]);
    }
    if (round >= 18) {
      if (own(2))
        gasnet_coll_wait_sync_all(handles, kAhead);
      else
        while (gasnet_coll_try_sync_all(handles, kAhead) != GASNET_OK) continue;
    }
    for (int i = 0; i < kAhead; ++i) {
      const int call = round * kAhead + i;
      const char* const d = destination[i];
      if (call % 5 == 0) check_piece(d, call, root, 0, bytes);
      if (call % 5 == 1) check_piece(d, call, root, me, bytes);
      for (gex_Rank_t from = 0; from < size; ++from) {
        if (call % 5 == 2 && me == root) check_piece(d + from * bytes, call, from, root, bytes);
        if (call % 5 == 3) check_piece(d + from * bytes, call, from, 0, bytes);
        if (call % 5 == 4) check_piece(d + from * bytes, call, from, me, bytes);
      }
    }
  }
  /* Named barriers of a team that has only some of the ranks. */
  gex_TM_t half;
  int id = 0;
  gex_TM_Split(&half, team, (int)(me % 2), 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
  const gex_Rank_t members = gex_TM_QuerySize(half), rank = gex_TM_QueryRank(half);
  CHECK(gasnet_coll_barrier(half, 3, 0) == GASNET_OK);
  CHECK(gasnet_coll_barrier_result(half, &id) == 0 && id == 3);
  gasnet_coll_barrier_notify(half, (int)rank, 0);
  CHECK((gasnet_coll_barrier_wait(half, (int)rank, 0) == GASNET_OK) == (members == 1));
  gasnet_coll_barrier_notify(half, 0, GASNET_BARRIERFLAG_UNNAMED);
  while (gasnet_coll_barrier_try(half, 0, GASNET_BARRIERFLAG_UNNAMED) != GASNET_OK) continue;
  CHECK(gasnet_coll_barrier_result(half, &id) != 0);
  gex_TM_Destroy(half, NULL, 0);
  barrier();
  if (me == 0) printf("pieces of %u ranks are good\n", size);
}

/* ---------------------------------------------------------------------------- several threads */

#ifdef GASNET_PAR
#include <pthread.h>

enum { kThreads = 3, kLongItems = 700 };

struct Worker {
  gex_TM_t parent;
  unsigned int number, rounds;
};

static uint64_t given(const struct Worker* worker, unsigned int round, gex_Rank_t jobrank) {
  return mixed(worker->number * 1000003u + round * 7919u + jobrank);
}

/* Sums and broadcasts, short and long; several are in flight. */
static void use_team(gex_TM_t tm, const struct Worker* worker, unsigned int round) {
  uint64_t mine[kLongItems], sums[kLongItems], sum = 0, by_function = 0, wanted = 0;
  const gex_Rank_t members = gex_TM_QuerySize(tm), root = round % members;
  uint64_t from_root[2] = {0, 0};
  for (int i = 0; i < kLongItems; ++i) mine[i] = given(worker, round, me) + (uint64_t)i;
  const uint64_t sent[2] = {mine[0], worker->number};
  gex_Event_t events[] = {
      gex_Coll_ReduceToAllNB(tm, &sum, mine, GEX_DT_U64, 8, 1, GEX_OP_ADD, NULL, NULL, 0),
      gex_Coll_ReduceToAllNB(tm, sums, mine, GEX_DT_U64, 8, kLongItems, GEX_OP_ADD, NULL, NULL, 0),
      gex_Coll_BroadcastNB(tm, root, from_root, sent, sizeof sent, 0),
      gex_Coll_ReduceToAllNB(tm, &by_function, mine, GEX_DT_I64, 8, 1, GEX_OP_USER, add_numbers,
                             &me, 0),
      gex_Coll_BarrierNB(tm, 0)};
  if (round % 2)
    gex_Event_WaitAll(events, 5, 0);
  else
    for (int i = 4; i >= 0; --i) gex_Event_Wait(events[i]);
  for (gex_Rank_t rank = 0; rank < members; ++rank)
    wanted += given(worker, round, gex_TM_TranslateRankToJobrank(tm, rank));
  CHECK(sum == wanted && by_function == wanted);
  for (int i = 0; i < kLongItems; ++i) CHECK(sums[i] == wanted + (uint64_t)i * members);
  CHECK(from_root[0] == given(worker, round, gex_TM_TranslateRankToJobrank(tm, root)));
  CHECK(from_root[1] == worker->number);
}

/* Teams of different parents are made at the same time. Their members must not mix them up. */
static void* work(void* argument) {
  const struct Worker* const worker = argument;
  for (unsigned int round = 0; round < worker->rounds; ++round) {
    gex_TM_t child;
    const int color = (int)((me + worker->number + round) % 2);
    gex_TM_Split(&child, worker->parent, color, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    for (unsigned int i = 0; i < 3; ++i) use_team(child, worker, round + i);
    use_team(worker->parent, worker, round);
    gex_TM_Destroy(child, NULL, 0);
  }
  return NULL;
}

static void run_threads(unsigned int rounds) {
  pthread_t threads[kThreads];
  struct Worker workers[kThreads];
  for (unsigned int i = 0; i < kThreads; ++i) {
    workers[i] = (struct Worker){GEX_TM_INVALID, i, rounds};
    gex_TM_Split(&workers[i].parent, team, 0, (int)(i % 2 ? me : size - me), NULL, 0,
                 GEX_FLAG_TM_NO_SCRATCH);
  }
  for (unsigned int i = 0; i < kThreads; ++i)
    CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
  for (unsigned int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  for (unsigned int i = 0; i < kThreads; ++i) gex_TM_Destroy(workers[i].parent, NULL, 0);
  if (me == 0) printf("threads of %u ranks are good\n", size);
}
#endif

int main(int argc, char** argv) {
  start_client("COLL_PROBE", &argc, &argv, NULL, 0, 0);
  CHECK(gex_Segment_Attach(&segment, team, 65536) == GASNET_OK);
  CHECK(size <= kMostRanks && argc >= 2);
  if (strcmp(argv[1], "random") == 0) {
    teams[0] = team;
    gex_TM_Split(&teams[1], team, (int)(me % 2), 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    gex_TM_Split(&teams[2], team, 0, -(int)me, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    gex_TM_Split(&teams[3], team, (int)(me / 3), 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    run_random(strtoull(argv[2], NULL, 0), strtoull(argv[3], NULL, 0));
    for (int i = 1; i < kTeams; ++i) gex_TM_Destroy(teams[i], NULL, 0);
    barrier();
    if (me == 0) printf("collectives of %u ranks are good\n", size);
  } else if (strcmp(argv[1], "compute") == 0) {
    run_compute(2, 1000);
  } else if (strcmp(argv[1], "compute-alone") == 0) {
    run_compute(8, 100);
  } else if (strcmp(argv[1], "order") == 0) {
    run_order();
  } else if (strcmp(argv[1], "idle") == 0) {
    run_idle();
  } else if (strcmp(argv[1], "barriers") == 0) {
    for (int i = 0; i < 700; ++i) barrier();
  } else if (strcmp(argv[1], "late") == 0) {
    run_late();
  } else if (strcmp(argv[1], "ahead") == 0) {
    run_ahead();
  } else if (strcmp(argv[1], "slots") == 0) {
    run_slots();
  } else if (strcmp(argv[1], "pieces") == 0) {
    own_state = me;
    run_pieces();
#ifdef GASNET_PAR
  } else if (strcmp(argv[1], "threads") == 0) {
    run_threads((unsigned int)strtoul(argv[2], NULL, 0));
#endif
  } else {
    own_state = me;
    run_sums();
  }
  fflush(stdout);
  barrier();
  gasnet_exit(0);
}
