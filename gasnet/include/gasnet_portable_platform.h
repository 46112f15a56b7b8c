/* gasnet_portable_platform.h: which compiler, processor and operating system this is. Usable alone.
 * Each PLATFORM_... name is 1 or undefined, unless the comment beside it says otherwise.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef GASNET_PORTABLE_PLATFORM_H
#define GASNET_PORTABLE_PLATFORM_H

/* Other projects copy a header of this name and origin; that of Open MPI's mpi.h defines some of
 * these names in another way. */
#undef PLATFORM_COMPILER_FAMILYNAME
#undef PLATFORM_COMPILER_FAMILYID
#undef PLATFORM_COMPILER_VERSION_MAJOR
#undef PLATFORM_COMPILER_VERSION_MINOR
#undef PLATFORM_COMPILER_VERSION_PATCH
#undef PLATFORM_COMPILER_VERSION_STR
#undef PLATFORM_COMPILER_VERSION_INT
#undef PLATFORM_COMPILER_VERSION
#undef PLATFORM_COMPILER_IDSTR
#undef PLATFORM_COMPILER_VERSION_GE
#undef PLATFORM_COMPILER_VERSION_GT
#undef PLATFORM_COMPILER_VERSION_LE
#undef PLATFORM_COMPILER_VERSION_LT
#undef PLATFORM_COMPILER_VERSION_EQ
#undef PLATFORM_COMPILER_UNKNOWN
#undef PLATFORM_COMPILER_GNU
#undef PLATFORM_COMPILER_GNU_C
#undef PLATFORM_COMPILER_GNU_CXX
#undef PLATFORM_COMPILER_CLANG
#undef PLATFORM_COMPILER_CLANG_C
#undef PLATFORM_COMPILER_CLANG_CXX

/* Compiler. PLATFORM_COMPILER_FAMILYNAME is a token, _VERSION_STR and _IDSTR are string literals.
 */
#if defined(__clang__)
#define PLATFORM_COMPILER_CLANG 1
#ifdef __cplusplus
#define PLATFORM_COMPILER_CLANG_CXX 1
#else
#define PLATFORM_COMPILER_CLANG_C 1
#endif
#define PLATFORM_COMPILER_FAMILYNAME CLANG
#define PLATFORM_COMPILER_FAMILYID 19
#define PLATFORM_COMPILER_VERSION_MAJOR __clang_major__
#define PLATFORM_COMPILER_VERSION_MINOR __clang_minor__
#define PLATFORM_COMPILER_VERSION_PATCH __clang_patchlevel__
#define PLATFORM_COMPILER_VERSION_STR __clang_version__
#elif defined(__GNUC__)
#define PLATFORM_COMPILER_GNU 1
#ifdef __cplusplus
#define PLATFORM_COMPILER_GNU_CXX 1
#else
#define PLATFORM_COMPILER_GNU_C 1
#endif
#define PLATFORM_COMPILER_FAMILYNAME GNU
#define PLATFORM_COMPILER_FAMILYID 1
#define PLATFORM_COMPILER_VERSION_MAJOR __GNUC__
#define PLATFORM_COMPILER_VERSION_MINOR __GNUC_MINOR__
#define PLATFORM_COMPILER_VERSION_PATCH __GNUC_PATCHLEVEL__
#define PLATFORM_COMPILER_VERSION_STR __VERSION__
#else
#error "GASNet needs GCC, Clang or a compiler that is compatible with them"
#endif

#define PLATFORM_COMPILER_VERSION_INT(major, minor, patch) \
  (((major) << 24) | ((minor) << 16) | (patch))
#define PLATFORM_COMPILER_VERSION                                                                 \
  PLATFORM_COMPILER_VERSION_INT(PLATFORM_COMPILER_VERSION_MAJOR, PLATFORM_COMPILER_VERSION_MINOR, \
                                PLATFORM_COMPILER_VERSION_PATCH)
#define PLATFORM_COMPILER_VERSION_GE(major, minor, patch) \
  (PLATFORM_COMPILER_VERSION >= PLATFORM_COMPILER_VERSION_INT(major, minor, patch))
#define PLATFORM_COMPILER_VERSION_GT(major, minor, patch) \
  (PLATFORM_COMPILER_VERSION > PLATFORM_COMPILER_VERSION_INT(major, minor, patch))
#define PLATFORM_COMPILER_VERSION_LE(major, minor, patch) \
  (PLATFORM_COMPILER_VERSION <= PLATFORM_COMPILER_VERSION_INT(major, minor, patch))
#define PLATFORM_COMPILER_VERSION_LT(major, minor, patch) \
  (PLATFORM_COMPILER_VERSION < PLATFORM_COMPILER_VERSION_INT(major, minor, patch))
#define PLATFORM_COMPILER_VERSION_EQ(major, minor, patch) \
  (PLATFORM_COMPILER_VERSION == PLATFORM_COMPILER_VERSION_INT(major, minor, patch))

#define GASNETI_PLATFORM_TEXT(token) #token
#define GASNETI_PLATFORM_TEXT_OF(macro) GASNETI_PLATFORM_TEXT(macro)
/* Text in programs that shows by which compiler they were made. */
#define PLATFORM_COMPILER_IDSTR                                                        \
  "|COMPILER_FAMILY:" GASNETI_PLATFORM_TEXT_OF(                                        \
      PLATFORM_COMPILER_FAMILYNAME) "|COMPILER_VERSION:" PLATFORM_COMPILER_VERSION_STR \
                                    "|COMPILER_FAMILYID:" GASNETI_PLATFORM_TEXT_OF(    \
                                        PLATFORM_COMPILER_FAMILYID) "|"

/* Operating system. */
#if defined(__linux__)
#define PLATFORM_OS_LINUX 1
#define PLATFORM_OS_FAMILYNAME LINUX
#else
#error "This library runs on Linux"
#endif

/* Processor. PLATFORM_ARCH_FAMILYNAME is a token. */
#if defined(__LP64__)
#define PLATFORM_ARCH_64 1
#else
#define PLATFORM_ARCH_32 1
#endif
#if defined(__x86_64__)
#define PLATFORM_ARCH_X86_64 1
#define PLATFORM_ARCH_FAMILYNAME X86_64
#elif defined(__aarch64__)
#define PLATFORM_ARCH_AARCH64 1
#define PLATFORM_ARCH_FAMILYNAME AARCH64
#elif defined(__powerpc__)
#define PLATFORM_ARCH_POWERPC 1
#define PLATFORM_ARCH_FAMILYNAME POWERPC
#elif defined(__riscv)
#define PLATFORM_ARCH_RISCV 1
#define PLATFORM_ARCH_FAMILYNAME RISCV
#elif defined(__i386__)
#define PLATFORM_ARCH_X86 1
#define PLATFORM_ARCH_FAMILYNAME X86
#else
#define PLATFORM_ARCH_UNKNOWN 1
#define PLATFORM_ARCH_FAMILYNAME UNKNOWN
#endif
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define PLATFORM_ARCH_LITTLE_ENDIAN 1
#else
#define PLATFORM_ARCH_BIG_ENDIAN 1
#endif

#endif /* GASNET_PORTABLE_PLATFORM_H */
