// Annotations of locks and roles: which of them guards a member, which a function needs, takes or
// gives back. Clang checks them (-Wthread-safety, preset clang); for other compilers they are
// empty. Objects that only one thread can reach, as in constructors, need no lock.
#pragma once

#if defined(__clang__)
#define LINTEL_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define LINTEL_THREAD_ANNOTATION(x)
#endif

// Annotations of classes: a lock or a role; an object that holds one as long as it lives.
#define LINTEL_CAPABILITY(name) LINTEL_THREAD_ANNOTATION(capability(name))
#define LINTEL_SCOPED_CAPABILITY LINTEL_THREAD_ANNOTATION(scoped_lockable)
// Annotation of members: accessed with the lock only.
#define LINTEL_GUARDED_BY(lock) LINTEL_THREAD_ANNOTATION(guarded_by(lock))
// Annotations of functions.
#define LINTEL_REQUIRES(...) LINTEL_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define LINTEL_ACQUIRE(...) LINTEL_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define LINTEL_RELEASE(...) LINTEL_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define LINTEL_TRY_ACQUIRE(...) LINTEL_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define LINTEL_RETURN_CAPABILITY(lock) LINTEL_THREAD_ANNOTATION(lock_returned(lock))
// The function returns only if the caller holds it, which the compiler cannot see.
#define LINTEL_ASSERT_CAPABILITY(...) LINTEL_THREAD_ANNOTATION(assert_capability(__VA_ARGS__))
// Annotation of functions whose locks the compiler cannot follow. A comment says why.
#define LINTEL_UNCHECKED_LOCKS LINTEL_THREAD_ANNOTATION(no_thread_safety_analysis)
