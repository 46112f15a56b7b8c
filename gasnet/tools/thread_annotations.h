/* thread_annotations.h: what the compiler is to check about locks: which of them guards a member,
 * which a function needs, takes or gives back. Clang checks it (-Wthread-safety, preset clang);
 * other compilers see nothing. Objects that only one thread can reach, as in constructors, need no
 * lock.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_GASNET_TOOLS_THREAD_ANNOTATIONS_H
#define LINTEL_GASNET_TOOLS_THREAD_ANNOTATIONS_H

#ifdef __clang__
#define LINTEL_GASNET_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define LINTEL_GASNET_THREAD_ANNOTATION(x)
#endif

/* On classes: a lock; an object that holds one as long as it lives. */
#define LINTEL_GASNET_CAPABILITY(name) LINTEL_GASNET_THREAD_ANNOTATION(capability(name))
#define LINTEL_GASNET_SCOPED_CAPABILITY LINTEL_GASNET_THREAD_ANNOTATION(scoped_lockable)
/* On variables: accessed with the lock only; what a pointer names is. */
#define LINTEL_GASNET_GUARDED_BY(lock) LINTEL_GASNET_THREAD_ANNOTATION(guarded_by(lock))
#define LINTEL_GASNET_PT_GUARDED_BY(lock) LINTEL_GASNET_THREAD_ANNOTATION(pt_guarded_by(lock))
/* On functions. SHARED: other threads may hold it, too; they only read then. */
#define LINTEL_GASNET_REQUIRES(...) \
  LINTEL_GASNET_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define LINTEL_GASNET_REQUIRES_SHARED(...) \
  LINTEL_GASNET_THREAD_ANNOTATION(requires_shared_capability(__VA_ARGS__))
#define LINTEL_GASNET_ACQUIRE(...) LINTEL_GASNET_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define LINTEL_GASNET_ACQUIRE_SHARED(...) \
  LINTEL_GASNET_THREAD_ANNOTATION(acquire_shared_capability(__VA_ARGS__))
#define LINTEL_GASNET_RELEASE(...) LINTEL_GASNET_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define LINTEL_GASNET_RELEASE_SHARED(...) \
  LINTEL_GASNET_THREAD_ANNOTATION(release_shared_capability(__VA_ARGS__))
#define LINTEL_GASNET_TRY_ACQUIRE(...) \
  LINTEL_GASNET_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define LINTEL_GASNET_TRY_ACQUIRE_SHARED(...) \
  LINTEL_GASNET_THREAD_ANNOTATION(try_acquire_shared_capability(__VA_ARGS__))
/* With a comment that says what the compiler cannot follow. */
#define LINTEL_GASNET_UNCHECKED_LOCKS LINTEL_GASNET_THREAD_ANNOTATION(no_thread_safety_analysis)

#endif /* LINTEL_GASNET_TOOLS_THREAD_ANNOTATIONS_H */
