// What the compiler is to check about locks and roles: which of them guards a member, which a
// function needs, takes or gives back. Clang checks it (-Wthread-safety, preset clang); other
// compilers see nothing. Objects that only one thread can reach, as in constructors, need no lock.
#pragma once

#if defined(__clang__)
#define LINTEL_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define LINTEL_THREAD_ANNOTATION(x)
#endif

// On classes: a lock or a role; an object that holds one as long as it lives.
#define LINTEL_CAPABILITY(name) LINTEL_THREAD_ANNOTATION(capability(name))
#define LINTEL_SCOPED_CAPABILITY LINTEL_THREAD_ANNOTATION(scoped_lockable)
// On members: accessed with the lock only.
#define LINTEL_GUARDED_BY(lock) LINTEL_THREAD_ANNOTATION(guarded_by(lock))
// On functions.
#define LINTEL_REQUIRES(...) LINTEL_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define LINTEL_ACQUIRE(...) LINTEL_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define LINTEL_RELEASE(...) LINTEL_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define LINTEL_TRY_ACQUIRE(...) LINTEL_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define LINTEL_RETURN_CAPABILITY(lock) LINTEL_THREAD_ANNOTATION(lock_returned(lock))
// The function returns only if the caller holds it, which the compiler cannot see.
#define LINTEL_ASSERT_CAPABILITY(...) LINTEL_THREAD_ANNOTATION(assert_capability(__VA_ARGS__))
// With a comment that says what the compiler cannot follow.
#define LINTEL_UNCHECKED_LOCKS LINTEL_THREAD_ANNOTATION(no_thread_safety_analysis)
