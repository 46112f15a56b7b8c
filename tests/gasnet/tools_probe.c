/* tools_probe.c: the tools alone, in the mode in which it is compiled. */
#include <gasnet_tools.h>
#include <signal.h>
#include <string.h>
#ifdef GASNETT_THREAD_SAFE
#include <pthread.h>
#endif

static int errors;
#define CHECK(condition)                                                \
  do {                                                                  \
    if (!(condition)) {                                                 \
      fprintf(stderr, "line %d: not true: %s\n", __LINE__, #condition); \
      ++errors;                                                         \
    }                                                                   \
  } while (0)

static void test_ticks(void) {
  const gasnett_tick_t start = gasnett_ticks_now();
  const uint64_t wall = gasnett_gettimeofday_us();
  int64_t difference;
  CHECK(gasnett_nsleep(20000000) == 0 && gasnett_nsleep(0) == 0);
  CHECK(gasnett_ticks_to_ns(gasnett_ticks_now() - start) >= 20000000);
  difference = (int64_t)(gasnett_gettimeofday_us() - wall) -
               (int64_t)gasnett_ticks_to_us(gasnett_ticks_now() - start);
  CHECK(difference < 10000 && difference > -10000);
  CHECK(gasnett_tick_granularityus() > 0 && gasnett_tick_overheadus() > 0);
  CHECK(start > GASNETT_TICK_MIN && start < GASNETT_TICK_MAX);
}

#define TEST_ATOMIC(F, V)                                                        \
  do {                                                                           \
    static F##_t object = F##_init(5);                                           \
    F##_t local = F##_init(1);                                                   \
    CHECK(F##_read(&object, 0) == 5);                                            \
    F##_set(&object, 0, GASNETT_ATOMIC_REL);                                     \
    F##_decrement(&object, 0);                                                   \
    CHECK(F##_read(&object, GASNETT_ATOMIC_ACQ) == (V)-1);                       \
    F##_increment(&object, 0);                                                   \
    CHECK(F##_add(&object, 7, 0) == 7);                                          \
    CHECK(F##_subtract(&object, 8, GASNETT_ATOMIC_MB_PRE) == (V)-1);             \
    CHECK(!F##_compare_and_swap(&object, 3, 4, GASNETT_ATOMIC_ACQ_IF_TRUE));     \
    CHECK(F##_compare_and_swap(&object, (V)-1, 4, GASNETT_ATOMIC_ACQ_IF_FALSE)); \
    CHECK(F##_swap(&object, 2, GASNETT_ATOMIC_MB_POST) == 4);                    \
    CHECK(!F##_decrement_and_test(&object, 0));                                  \
    CHECK(F##_decrement_and_test(&object, GASNETT_ATOMIC_REL));                  \
    CHECK(F##_decrement_and_test(&local, 0));                                    \
  } while (0)

static void test_numbers(void) {
  char text[50];
  int i;
  for (i = -1; i < 62; ++i) {
    const int64_t value = i < 0 ? 0 : (int64_t)1 << i;
    CHECK(gasnett_parse_int(gasnett_format_number(value, text, sizeof text, 0), 0) == value);
    CHECK(gasnett_parse_int(gasnett_format_number(value, text, sizeof text, 1), 1) == value);
  }
  CHECK(gasnett_parse_int("0x10", 0) == 16 && gasnett_parse_int("-3", 0) == -3);
  CHECK(gasnett_parse_int("1.5KB", 1) == 1536 && gasnett_parse_int("2", 1024) == 2048);
  CHECK(gasnett_parse_int("3/4 MB", 1) == 786432 && gasnett_parse_int("7 b", 1024) == 7);
}

static void test_environment(void) {
  gasnett_setenv("PROBE_A", "3/8");
  gasnett_setenv("PROBE_B", "Yes");
  gasnett_setenv("PROBE_C", "2MB");
  CHECK(gasnett_getenv_dbl_withdefault("PROBE_A", 0) == 0.375);
  CHECK(gasnett_getenv_dbl_withdefault("PROBE_Z", 2.5) == 2.5);
  CHECK(gasnett_getenv_yesno_withdefault("PROBE_B", 0) == 1);
  CHECK(gasnett_getenv_yesno_withdefault("PROBE_Z", 1) == 1);
  CHECK(gasnett_getenv_int_withdefault("PROBE_C", 0, 1) == 2097152);
  CHECK(gasnett_getenv_int_withdefault("PROBE_Z", -4, 0) == -4);
  CHECK(!strcmp(gasnett_getenv_withdefault("PROBE_Z", "text"), "text"));
  CHECK(gasnett_getenv_withdefault("PROBE_Z", NULL) == NULL);
  gasnett_unsetenv("PROBE_A");
  CHECK(gasnett_getenv("PROBE_A") == NULL);
  CHECK(gasnett_verboseenv() == 0);
}

static void test_bytes(void) {
  unsigned char from[64], to[64];
  size_t offset, length, zeros;
  for (offset = 0; offset < sizeof from; ++offset) from[offset] = offset % 3 ? 0x80 : 0;
  for (offset = 0; offset < 9; ++offset)
    for (length = 0; offset + length <= 48; ++length) {
      size_t i;
      for (i = zeros = 0; i < length; ++i) zeros += from[offset + i] == 0;
      CHECK(gasnett_count0s(from + offset, length) == zeros);
      CHECK(gasnett_count0s_copy(to + 8 - offset, from + offset, length) == zeros);
      CHECK(!memcmp(to + 8 - offset, from + offset, length));
    }
  CHECK(gasnett_count0s_uint64_t(0) == 8 && gasnett_count0s_uint64_t(0x0100ff0000800000) == 5);
  CHECK(gasnett_count0s_uint32_t(0x00ff0000) == 3 && gasnett_count0s_uint32_t(0xffffffff) == 0);
  CHECK(gasnett_checksum(from, 64) == gasnett_checksum(from, 64));
  CHECK(gasnett_checksum(from, 64) != gasnett_checksum(from, 63));
}

static gasnett_mutex_t mutex = GASNETT_MUTEX_INITIALIZER;
static gasnett_cond_t condition = GASNETT_COND_INITIALIZER;
static gasnett_rwlock_t rwlock = GASNETT_RWLOCK_INITIALIZER;
GASNETT_THREADKEY_DECLARE(key);
GASNETT_THREADKEY_DEFINE(key);

#ifdef GASNETT_THREAD_SAFE
static gasnett_atomic_t counter = gasnett_atomic_init(0);
static int plain, ready;
static void* count(void* argument) {
  int i;
  CHECK(gasnett_threadkey_get(key) == NULL);
  gasnett_threadkey_set(key, argument);
  for (i = 0; i < 10000; ++i) {
    gasnett_atomic_increment(&counter, 0);
    gasnett_mutex_lock(&mutex);
    ++plain;
    gasnett_mutex_unlock(&mutex);
  }
  CHECK(gasnett_threadkey_get_noinit(key) == argument);
  gasnett_mutex_lock(&mutex);
  ++ready;
  gasnett_cond_signal(&condition);
  gasnett_mutex_unlock(&mutex);
  return NULL;
}
static void test_threads(void) {
  pthread_t threads[2];
  int numbers[2] = {0, 1};
  int i;
  for (i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, count, &numbers[i]);
  gasnett_mutex_lock(&mutex);
  while (ready < 2) gasnett_cond_wait(&condition, &mutex);
  gasnett_mutex_unlock(&mutex);
  for (i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
  CHECK(gasnett_atomic_read(&counter, 0) == 20000 && plain == 20000);
  gasnett_mutex_lock(&mutex);
  CHECK(gasnett_mutex_trylock(&mutex) == EBUSY);
  gasnett_mutex_unlock(&mutex);
  gasnett_rwlock_rdlock(&rwlock);
  CHECK(gasnett_rwlock_trywrlock(&rwlock) == EBUSY && gasnett_rwlock_tryrdlock(&rwlock) == 0);
  gasnett_rwlock_unlock(&rwlock);
  gasnett_rwlock_unlock(&rwlock);
}
#else
static void test_threads(void) {
  gasnett_mutex_lock(&mutex);
  gasnett_mutex_unlock(&mutex);
  gasnett_cond_signal(&condition);
  gasnett_rwlock_wrlock(&rwlock);
  gasnett_rwlock_unlock(&rwlock);
  gasnett_threadkey_set(key, &mutex);
  CHECK(gasnett_threadkey_get(key) == &mutex);
}
#endif

static int user_calls;
static int user_backtrace(int fd) {
  (void)fd;
  ++user_calls;
  return 0;
}
gasnett_backtrace_type_t gasnett_backtrace_user = {"USER", user_backtrace, 1};

static void on_signal(int number) { user_calls += number == SIGUSR1; }

int main(int argc, char** argv) {
  char* location;
  (void)argc;
  test_ticks();
  TEST_ATOMIC(gasnett_atomic, gasnett_atomic_val_t);
  TEST_ATOMIC(gasnett_atomic32, uint32_t);
  TEST_ATOMIC(gasnett_atomic64, uint64_t);
  TEST_ATOMIC(gasnett_strongatomic, gasnett_atomic_val_t);
  TEST_ATOMIC(gasnett_strongatomic32, uint32_t);
  TEST_ATOMIC(gasnett_strongatomic64, uint64_t);
  CHECK(gasnett_atomic_signed((gasnett_atomic_val_t)-2) == -2);
  test_numbers();
  test_environment();
  test_bytes();
  test_threads();
  gasnett_setenv("GASNET_BACKTRACE_TYPE", "USER");
  gasnett_setenv("GASNET_BACKTRACE", "1");
  gasnett_backtrace_init(argv[0]);
  CHECK(gasnett_print_backtrace(2) == 0 && gasnett_print_backtrace_ifenabled(2) == 0);
  CHECK(user_calls == 2);
  CHECK(gasnett_reghandler(SIGUSR1, on_signal) == SIG_DFL);
  raise(SIGUSR1);
  CHECK(user_calls == 3);
  CHECK(gasnett_cpu_count() > 0 && gasnett_getPhysMemSz(1) > 0 && gasnett_isLittleEndian() == 1);
  CHECK(gasnett_set_affinity(0) == 0 && gasnett_maximize_rlimits() != 0);
  CHECK(gasnett_release_version() == 2023 * 1000000 + 9 * 10000);
  CHECK(!strcmp(gasnett_release_version_str(), "2023.9.0"));
  CHECK(strstr(gasnett_exe_name(), "tools") != NULL && *gasnett_gethostname());
  location = gasnett_current_loc;
  CHECK(location && strstr(location, "main at ") != NULL);
  free(location);
  gasnett_flush_streams();
  return errors != 0;
}
