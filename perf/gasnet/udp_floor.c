/* udp_floor.c: the time of a barrier of processes over bare UDP sockets on this machine. rows.py
 * prints it beside the barrier of GASNet.
 *
 * Usage: perf_gasnet_udp_floor <processes>. Processes are pinned as the ranks of coll_rows.c. A
 * dissemination barrier sends n log2(n) messages, a tree and a star 2 (n - 1). In a fold, as many
 * processes as there are processors exchange in pairs; the others send to them and get an answer. A
 * process that waits polls and yields its processor, or sleeps in recv().
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kMost = 64, kBatches = 400, kCalls = 16, kFromAbove = 30 };

static unsigned int me, count, processors;
static int sockets[kMost];
static struct sockaddr_in addresses[kMost];
static unsigned int arrived[kFromAbove + 1]; /* by step; later barriers may send early */
static int sleeps;

static void fail(const char* call) {
  perror(call);
  exit(1);
}

static void send_to(unsigned int to, unsigned int step) {
  const unsigned long message = step;
  if (sendto(sockets[me], &message, sizeof message, 0, (struct sockaddr*)&addresses[to],
             sizeof addresses[to]) != sizeof message)
    fail("sendto");
}

static void await(unsigned int step) {
  while (arrived[step] == 0) {
    unsigned long message;
    if (recv(sockets[me], &message, sizeof message, sleeps ? 0 : MSG_DONTWAIT) == sizeof message)
      ++arrived[message];
    else if (errno == EAGAIN)
      sched_yield();
    else
      fail("recv");
  }
  --arrived[step];
}

static void dissemination(void) {
  for (unsigned int step = 0; 1u << step < count; ++step) {
    send_to((me + (1u << step)) % count, step);
    await(step);
  }
}

static void tree(void) {
  unsigned int step = 0;
  for (; 1u << step < count && !(me >> step & 1); ++step)
    if (me + (1u << step) < count) await(step);
  if (me != 0) {
    send_to(me - (1u << step), step);
    await(kFromAbove);
  }
  while (step-- != 0)
    if (me + (1u << step) < count) send_to(me + (1u << step), kFromAbove);
}

static void star(void) {
  if (me != 0) {
    send_to(0, 0);
    await(kFromAbove);
    return;
  }
  for (unsigned int other = 1; other < count; ++other) await(0);
  for (unsigned int other = 1; other < count; ++other) send_to(other, kFromAbove);
}

static void fold(void) {
  unsigned int exchanges = 0;
  while (2u << exchanges <= count && 2u << exchanges <= processors) ++exchanges;
  unsigned int step = exchanges;
  while (2u << step < count) ++step;
  for (; step > exchanges && me < 1u << step; --step)
    if (me + (1u << step) < count) await(step);
  if (me >= 1u << step) {
    send_to(me - (1u << step), step);
    await(kFromAbove);
    ++step;
  } else {
    if (me + (1u << step) < count) await(step);
    for (unsigned int k = 0; k < exchanges; ++k) {
      send_to(me ^ (1u << k), k);
      await(k);
    }
  }
  for (; me + (1u << step) < count; ++step) send_to(me + (1u << step), kFromAbove);
}

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void measure(const char* name, void (*barrier)(void), int sleeping) {
  static double batches[kBatches];
  sleeps = sleeping;
  for (unsigned int batch = 0; batch < kBatches; ++batch) {
    const double start = now_ns();
    for (unsigned int i = 0; i < kCalls; ++i) barrier();
    batches[batch] = (now_ns() - start) / kCalls;
  }
  qsort(batches, kBatches, sizeof *batches, compare);
  if (me == 0) printf("%s_ns %.1f\n", name, batches[kBatches / 2]);
}

int main(int argc, char** argv) {
  count = argc == 2 ? (unsigned int)strtoul(argv[1], NULL, 10) : 0;
  if (count < 2 || count > kMost) return 2;
  processors = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN);
  for (unsigned int i = 0; i < count; ++i) {
    socklen_t length = sizeof addresses[i];
    addresses[i].sin_family = AF_INET;
    addresses[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockets[i] = socket(AF_INET, SOCK_DGRAM, 0);
    if (sockets[i] < 0 || bind(sockets[i], (struct sockaddr*)&addresses[i], length) != 0)
      fail("bind");
    getsockname(sockets[i], (struct sockaddr*)&addresses[i], &length);
  }
  for (unsigned int i = 1; i < count && me == 0; ++i)
    if (fork() == 0) me = i;
  cpu_set_t processor;
  CPU_ZERO(&processor);
  CPU_SET((int)(me % processors), &processor);
  sched_setaffinity(0, sizeof processor, &processor);
  measure("dissemination_yields", dissemination, 0);
  measure("dissemination_sleeps", dissemination, 1);
  measure("tree_yields", tree, 0);
  measure("tree_sleeps", tree, 1);
  measure("star_yields", star, 0);
  measure("star_sleeps", star, 1);
  measure("fold_yields", fold, 0);
  measure("fold_sleeps", fold, 1);
  fflush(stdout);
  if (me != 0) _exit(0);
  while (wait(NULL) > 0) {
  }
  return 0;
}
