/* gasneti_threads.h: mutexes, conditions, read-write locks and thread keys of the tools. Private:
 * include gasnet_tools.h.
 *
 * Without threads they compile to nothing, unless GASNETT_USE_TRUE_MUTEXES is 1.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNETI_THREADS_H
#define GASNETI_THREADS_H

#include <errno.h>
#include <gasneti_annotations.h>
#include <pthread.h>

#if defined(GASNETI_TOOLS_THREADS) || \
    (defined(GASNETT_USE_TRUE_MUTEXES) && GASNETT_USE_TRUE_MUTEXES)
#define GASNETI_TRUE_LOCKS 1
#endif

/* Ends the program if a call of pthreads failed: misuse of a lock. */
#define GASNETI_LOCK_CHECK(call)                                                               \
  do {                                                                                         \
    const int gasneti_code = (call);                                                           \
    if (GASNETT_PREDICT_FALSE(gasneti_code != 0))                                              \
      gasneti_fatalerror(__func__, __FILE__, __LINE__, "%s returned %d", #call, gasneti_code); \
  } while (0)

#ifdef GASNETI_TRUE_LOCKS

#ifdef GASNET_DEBUG
/* The owner is recorded, so that misuse is detected. */
typedef struct {
  pthread_mutex_t gasneti_mutex;
  pthread_t gasneti_owner;
  int gasneti_owned;
} gasnett_mutex_t;
#define GASNETT_MUTEX_INITIALIZER \
  { PTHREAD_MUTEX_INITIALIZER, 0, 0 }
#define GASNETI_MUTEX_OWNED(m)                               \
  (__atomic_load_n(&(m)->gasneti_owned, __ATOMIC_RELAXED) && \
   pthread_equal(__atomic_load_n(&(m)->gasneti_owner, __ATOMIC_RELAXED), pthread_self()))
#define GASNETI_MUTEX_TAKEN(m)                                               \
  do {                                                                       \
    __atomic_store_n(&(m)->gasneti_owner, pthread_self(), __ATOMIC_RELAXED); \
    __atomic_store_n(&(m)->gasneti_owned, 1, __ATOMIC_RELAXED);              \
  } while (0)
#define GASNETI_MUTEX_FREED(m) __atomic_store_n(&(m)->gasneti_owned, 0, __ATOMIC_RELAXED)
#else
typedef struct {
  pthread_mutex_t gasneti_mutex;
} gasnett_mutex_t;
#define GASNETT_MUTEX_INITIALIZER \
  { PTHREAD_MUTEX_INITIALIZER }
#define GASNETI_MUTEX_TAKEN(m) ((void)0)
#define GASNETI_MUTEX_FREED(m) ((void)0)
#endif

GASNETT_INLINE(gasnett_mutex_init) void gasnett_mutex_init(gasnett_mutex_t* m) {
  GASNETI_LOCK_CHECK(pthread_mutex_init(&m->gasneti_mutex, (const pthread_mutexattr_t*)0));
  GASNETI_MUTEX_FREED(m);
}
GASNETT_INLINE(gasnett_mutex_destroy_ignoreerr)
int gasnett_mutex_destroy_ignoreerr(gasnett_mutex_t* m) {
  return pthread_mutex_destroy(&m->gasneti_mutex);
}
GASNETT_INLINE(gasnett_mutex_destroy) void gasnett_mutex_destroy(gasnett_mutex_t* m) {
  GASNETI_LOCK_CHECK(pthread_mutex_destroy(&m->gasneti_mutex));
}
GASNETT_INLINE(gasnett_mutex_assertlocked) void gasnett_mutex_assertlocked(gasnett_mutex_t* m) {
#ifdef GASNET_DEBUG
  gasneti_assert(GASNETI_MUTEX_OWNED(m));
#endif
  (void)m;
}
GASNETT_INLINE(gasnett_mutex_assertunlocked)
void gasnett_mutex_assertunlocked(gasnett_mutex_t* m) {
#ifdef GASNET_DEBUG
  gasneti_assert(!GASNETI_MUTEX_OWNED(m));
#endif
  (void)m;
}
GASNETT_INLINE(gasnett_mutex_lock) void gasnett_mutex_lock(gasnett_mutex_t* m) {
  gasnett_mutex_assertunlocked(m);
  GASNETI_LOCK_CHECK(pthread_mutex_lock(&m->gasneti_mutex));
  GASNETI_MUTEX_TAKEN(m);
}
/** Returns 0 or EBUSY. */
GASNETT_INLINE(gasnett_mutex_trylock) int gasnett_mutex_trylock(gasnett_mutex_t* m) {
  const int code = pthread_mutex_trylock(&m->gasneti_mutex);
  if (code == 0) GASNETI_MUTEX_TAKEN(m);
  return code;
}
GASNETT_INLINE(gasnett_mutex_unlock) void gasnett_mutex_unlock(gasnett_mutex_t* m) {
  gasnett_mutex_assertlocked(m);
  GASNETI_MUTEX_FREED(m);
  GASNETI_LOCK_CHECK(pthread_mutex_unlock(&m->gasneti_mutex));
}

typedef struct {
  pthread_cond_t gasneti_cond;
} gasnett_cond_t;
#define GASNETT_COND_INITIALIZER \
  { PTHREAD_COND_INITIALIZER }
GASNETT_INLINE(gasnett_cond_init) void gasnett_cond_init(gasnett_cond_t* c) {
  GASNETI_LOCK_CHECK(pthread_cond_init(&c->gasneti_cond, (const pthread_condattr_t*)0));
}
GASNETT_INLINE(gasnett_cond_destroy) void gasnett_cond_destroy(gasnett_cond_t* c) {
  GASNETI_LOCK_CHECK(pthread_cond_destroy(&c->gasneti_cond));
}
GASNETT_INLINE(gasnett_cond_signal) void gasnett_cond_signal(gasnett_cond_t* c) {
  GASNETI_LOCK_CHECK(pthread_cond_signal(&c->gasneti_cond));
}
GASNETT_INLINE(gasnett_cond_broadcast) void gasnett_cond_broadcast(gasnett_cond_t* c) {
  GASNETI_LOCK_CHECK(pthread_cond_broadcast(&c->gasneti_cond));
}
GASNETT_INLINE(gasnett_cond_wait) void gasnett_cond_wait(gasnett_cond_t* c, gasnett_mutex_t* m) {
  gasnett_mutex_assertlocked(m);
  GASNETI_MUTEX_FREED(m);
  GASNETI_LOCK_CHECK(pthread_cond_wait(&c->gasneti_cond, &m->gasneti_mutex));
  GASNETI_MUTEX_TAKEN(m);
}

#ifdef GASNET_DEBUG
/* The writer and the number of readers are recorded. */
typedef struct {
  pthread_rwlock_t gasneti_rwlock;
  pthread_t gasneti_writer;
  int gasneti_written;
  int gasneti_readers;
} gasnett_rwlock_t;
#define GASNETT_RWLOCK_INITIALIZER \
  { PTHREAD_RWLOCK_INITIALIZER, 0, 0, 0 }
#define GASNETI_RWLOCK_IS_WRITTEN(l)                           \
  (__atomic_load_n(&(l)->gasneti_written, __ATOMIC_RELAXED) && \
   pthread_equal(__atomic_load_n(&(l)->gasneti_writer, __ATOMIC_RELAXED), pthread_self()))
#define GASNETI_RWLOCK_IS_READ(l) (__atomic_load_n(&(l)->gasneti_readers, __ATOMIC_RELAXED) > 0)
#define GASNETI_RWLOCK_READS(l, change) \
  ((void)__atomic_fetch_add(&(l)->gasneti_readers, change, __ATOMIC_RELAXED))
#define GASNETI_RWLOCK_WRITES(l)                                              \
  do {                                                                        \
    __atomic_store_n(&(l)->gasneti_writer, pthread_self(), __ATOMIC_RELAXED); \
    __atomic_store_n(&(l)->gasneti_written, 1, __ATOMIC_RELAXED);             \
  } while (0)
#define GASNETI_RWLOCK_FREED(l)                                     \
  do {                                                              \
    if (GASNETI_RWLOCK_IS_WRITTEN(l)) {                             \
      __atomic_store_n(&(l)->gasneti_written, 0, __ATOMIC_RELAXED); \
    } else {                                                        \
      gasneti_assert(GASNETI_RWLOCK_IS_READ(l));                    \
      GASNETI_RWLOCK_READS(l, -1);                                  \
    }                                                               \
  } while (0)
#else
typedef struct {
  pthread_rwlock_t gasneti_rwlock;
} gasnett_rwlock_t;
#define GASNETT_RWLOCK_INITIALIZER \
  { PTHREAD_RWLOCK_INITIALIZER }
#define GASNETI_RWLOCK_READS(l, change) ((void)(l))
#define GASNETI_RWLOCK_WRITES(l) ((void)(l))
#define GASNETI_RWLOCK_FREED(l) ((void)(l))
#endif
GASNETT_INLINE(gasnett_rwlock_init) void gasnett_rwlock_init(gasnett_rwlock_t* l) {
  GASNETI_LOCK_CHECK(pthread_rwlock_init(&l->gasneti_rwlock, (const pthread_rwlockattr_t*)0));
#ifdef GASNET_DEBUG
  l->gasneti_written = l->gasneti_readers = 0;
#endif
}
GASNETT_INLINE(gasnett_rwlock_destroy) void gasnett_rwlock_destroy(gasnett_rwlock_t* l) {
  GASNETI_LOCK_CHECK(pthread_rwlock_destroy(&l->gasneti_rwlock));
}
GASNETT_INLINE(gasnett_rwlock_rdlock) void gasnett_rwlock_rdlock(gasnett_rwlock_t* l) {
  GASNETI_LOCK_CHECK(pthread_rwlock_rdlock(&l->gasneti_rwlock));
  GASNETI_RWLOCK_READS(l, 1);
}
GASNETT_INLINE(gasnett_rwlock_wrlock) void gasnett_rwlock_wrlock(gasnett_rwlock_t* l) {
  GASNETI_LOCK_CHECK(pthread_rwlock_wrlock(&l->gasneti_rwlock));
  GASNETI_RWLOCK_WRITES(l);
}
/** Returns 0, EBUSY or EAGAIN. */
GASNETT_INLINE(gasnett_rwlock_tryrdlock) int gasnett_rwlock_tryrdlock(gasnett_rwlock_t* l) {
  const int code = pthread_rwlock_tryrdlock(&l->gasneti_rwlock);
  if (code == 0) GASNETI_RWLOCK_READS(l, 1);
  return code;
}
GASNETT_INLINE(gasnett_rwlock_trywrlock) int gasnett_rwlock_trywrlock(gasnett_rwlock_t* l) {
  const int code = pthread_rwlock_trywrlock(&l->gasneti_rwlock);
  if (code == 0) GASNETI_RWLOCK_WRITES(l);
  return code;
}
GASNETT_INLINE(gasnett_rwlock_unlock) void gasnett_rwlock_unlock(gasnett_rwlock_t* l) {
  GASNETI_RWLOCK_FREED(l);
  GASNETI_LOCK_CHECK(pthread_rwlock_unlock(&l->gasneti_rwlock));
}
/* Debug builds only. The threads that read are not recorded, so any reader is accepted. */
GASNETT_INLINE(gasnett_rwlock_assertlocked) void gasnett_rwlock_assertlocked(gasnett_rwlock_t* l) {
  gasneti_assert(GASNETI_RWLOCK_IS_WRITTEN(l) || GASNETI_RWLOCK_IS_READ(l));
  (void)l;
}
GASNETT_INLINE(gasnett_rwlock_assertrdlocked)
void gasnett_rwlock_assertrdlocked(gasnett_rwlock_t* l) {
  gasneti_assert(GASNETI_RWLOCK_IS_READ(l));
  (void)l;
}
GASNETT_INLINE(gasnett_rwlock_assertwrlocked)
void gasnett_rwlock_assertwrlocked(gasnett_rwlock_t* l) {
  gasneti_assert(GASNETI_RWLOCK_IS_WRITTEN(l));
  (void)l;
}
GASNETT_INLINE(gasnett_rwlock_assertunlocked)
void gasnett_rwlock_assertunlocked(gasnett_rwlock_t* l) {
  gasneti_assert(!GASNETI_RWLOCK_IS_WRITTEN(l));
  (void)l;
}

#else /* without threads */

typedef struct {
  char gasneti_unused;
} gasnett_mutex_t;
typedef gasnett_mutex_t gasnett_cond_t;
typedef gasnett_mutex_t gasnett_rwlock_t;
#define GASNETT_MUTEX_INITIALIZER \
  { 0 }
#define GASNETT_COND_INITIALIZER \
  { 0 }
#define GASNETT_RWLOCK_INITIALIZER \
  { 0 }
#define gasnett_mutex_init(m) ((void)(m))
#define gasnett_mutex_destroy(m) ((void)(m))
#define gasnett_mutex_destroy_ignoreerr(m) ((void)(m), 0)
#define gasnett_mutex_lock(m) ((void)(m))
#define gasnett_mutex_unlock(m) ((void)(m))
#define gasnett_mutex_trylock(m) ((void)(m), 0)
#define gasnett_mutex_assertlocked(m) ((void)(m))
#define gasnett_mutex_assertunlocked(m) ((void)(m))
#define gasnett_cond_init(c) ((void)(c))
#define gasnett_cond_destroy(c) ((void)(c))
#define gasnett_cond_signal(c) ((void)(c))
#define gasnett_cond_broadcast(c) ((void)(c))
#define gasnett_cond_wait(c, m) \
  gasneti_fatalerror(__func__, __FILE__, __LINE__, "nobody can end gasnett_cond_wait here")
#define gasnett_rwlock_init(l) ((void)(l))
#define gasnett_rwlock_destroy(l) ((void)(l))
#define gasnett_rwlock_rdlock(l) ((void)(l))
#define gasnett_rwlock_wrlock(l) ((void)(l))
#define gasnett_rwlock_tryrdlock(l) ((void)(l), 0)
#define gasnett_rwlock_trywrlock(l) ((void)(l), 0)
#define gasnett_rwlock_unlock(l) ((void)(l))
#define gasnett_rwlock_assertlocked(l) ((void)(l))
#define gasnett_rwlock_assertrdlocked(l) ((void)(l))
#define gasnett_rwlock_assertwrlocked(l) ((void)(l))
#define gasnett_rwlock_assertunlocked(l) ((void)(l))

#endif

/* ---------------------------------------------------------------------------------- thread keys */

#ifdef GASNETI_TOOLS_THREADS
typedef struct {
  pthread_key_t gasneti_key;
  int volatile gasneti_ready;
} gasneti_threadkey_t;

/* Creates the key on the first call. Some programs take its address to test whether it exists. */
__attribute__((unused)) static void _gasneti_threadkey_init(pthread_key_t* key,
                                                            gasnett_mutex_t* lock,
                                                            int volatile* ready) {
  gasnett_mutex_lock(lock);
  if (!*ready) {
    GASNETI_LOCK_CHECK(pthread_key_create(key, (void (*)(void*))0));
    __atomic_store_n(ready, 1, __ATOMIC_RELEASE);
  }
  gasnett_mutex_unlock(lock);
}

#define GASNETT_THREADKEY_DECLARE(k)          \
  extern gasneti_threadkey_t gasneti_key_##k; \
  extern gasnett_mutex_t gasneti_keylock_##k
#define GASNETT_THREADKEY_DEFINE(k)             \
  gasneti_threadkey_t gasneti_key_##k = {0, 0}; \
  gasnett_mutex_t gasneti_keylock_##k = GASNETT_MUTEX_INITIALIZER
#define gasnett_threadkey_init(k)                                                    \
  (__atomic_load_n(&gasneti_key_##k.gasneti_ready, __ATOMIC_ACQUIRE)                 \
       ? (void)0                                                                     \
       : _gasneti_threadkey_init(&gasneti_key_##k.gasneti_key, &gasneti_keylock_##k, \
                                 &gasneti_key_##k.gasneti_ready))
#define gasnett_threadkey_get_noinit(k) (pthread_getspecific(gasneti_key_##k.gasneti_key))
#define gasnett_threadkey_set_noinit(k, p) \
  ((void)pthread_setspecific(gasneti_key_##k.gasneti_key, (p)))
#define gasnett_threadkey_get(k) (gasnett_threadkey_init(k), gasnett_threadkey_get_noinit(k))
#define gasnett_threadkey_set(k, p) (gasnett_threadkey_init(k), gasnett_threadkey_set_noinit(k, p))
#else
#define GASNETT_THREADKEY_DECLARE(k) extern void* gasneti_key_##k
#define GASNETT_THREADKEY_DEFINE(k) void* gasneti_key_##k = 0
#define gasnett_threadkey_init(k) ((void)0)
#define gasnett_threadkey_get_noinit(k) (gasneti_key_##k)
#define gasnett_threadkey_set_noinit(k, p) ((void)(gasneti_key_##k = (void*)(p)))
#define gasnett_threadkey_get(k) gasnett_threadkey_get_noinit(k)
#define gasnett_threadkey_set(k, p) gasnett_threadkey_set_noinit(k, p)
#endif

#endif /* GASNETI_THREADS_H */
