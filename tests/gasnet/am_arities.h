/* am_arities.h: lists of parameters and values for 0 to 16 arguments.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef LINTEL_TESTS_GASNET_AM_ARITIES_H
#define LINTEL_TESTS_GASNET_AM_ARITIES_H

#define FOR_EACH_ARITY(X) \
  X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16)

/* Parameters of a handler. */
#define PARAMETERS0
#define PARAMETERS1 PARAMETERS0, gex_AM_Arg_t a0
#define PARAMETERS2 PARAMETERS1, gex_AM_Arg_t a1
#define PARAMETERS3 PARAMETERS2, gex_AM_Arg_t a2
#define PARAMETERS4 PARAMETERS3, gex_AM_Arg_t a3
#define PARAMETERS5 PARAMETERS4, gex_AM_Arg_t a4
#define PARAMETERS6 PARAMETERS5, gex_AM_Arg_t a5
#define PARAMETERS7 PARAMETERS6, gex_AM_Arg_t a6
#define PARAMETERS8 PARAMETERS7, gex_AM_Arg_t a7
#define PARAMETERS9 PARAMETERS8, gex_AM_Arg_t a8
#define PARAMETERS10 PARAMETERS9, gex_AM_Arg_t a9
#define PARAMETERS11 PARAMETERS10, gex_AM_Arg_t a10
#define PARAMETERS12 PARAMETERS11, gex_AM_Arg_t a11
#define PARAMETERS13 PARAMETERS12, gex_AM_Arg_t a12
#define PARAMETERS14 PARAMETERS13, gex_AM_Arg_t a13
#define PARAMETERS15 PARAMETERS14, gex_AM_Arg_t a14
#define PARAMETERS16 PARAMETERS15, gex_AM_Arg_t a15

/* The arguments of a handler call. A first element is added, so that no list is empty. */
#define GIVEN0 0
#define GIVEN1 GIVEN0, a0
#define GIVEN2 GIVEN1, a1
#define GIVEN3 GIVEN2, a2
#define GIVEN4 GIVEN3, a3
#define GIVEN5 GIVEN4, a4
#define GIVEN6 GIVEN5, a5
#define GIVEN7 GIVEN6, a6
#define GIVEN8 GIVEN7, a7
#define GIVEN9 GIVEN8, a8
#define GIVEN10 GIVEN9, a9
#define GIVEN11 GIVEN10, a10
#define GIVEN12 GIVEN11, a11
#define GIVEN13 GIVEN12, a12
#define GIVEN14 GIVEN13, a13
#define GIVEN15 GIVEN14, a14
#define GIVEN16 GIVEN15, a15

/* The values to send: argument(number of arguments, direction, index). */
#define VALUES0(m, d)
#define VALUES1(m, d) VALUES0(m, d), argument(m, d, 0)
#define VALUES2(m, d) VALUES1(m, d), argument(m, d, 1)
#define VALUES3(m, d) VALUES2(m, d), argument(m, d, 2)
#define VALUES4(m, d) VALUES3(m, d), argument(m, d, 3)
#define VALUES5(m, d) VALUES4(m, d), argument(m, d, 4)
#define VALUES6(m, d) VALUES5(m, d), argument(m, d, 5)
#define VALUES7(m, d) VALUES6(m, d), argument(m, d, 6)
#define VALUES8(m, d) VALUES7(m, d), argument(m, d, 7)
#define VALUES9(m, d) VALUES8(m, d), argument(m, d, 8)
#define VALUES10(m, d) VALUES9(m, d), argument(m, d, 9)
#define VALUES11(m, d) VALUES10(m, d), argument(m, d, 10)
#define VALUES12(m, d) VALUES11(m, d), argument(m, d, 11)
#define VALUES13(m, d) VALUES12(m, d), argument(m, d, 12)
#define VALUES14(m, d) VALUES13(m, d), argument(m, d, 13)
#define VALUES15(m, d) VALUES14(m, d), argument(m, d, 14)
#define VALUES16(m, d) VALUES15(m, d), argument(m, d, 15)

#endif /* LINTEL_TESTS_GASNET_AM_ARITIES_H */
