/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CU_KERNELS_H
#define CU_KERNELS_H

/*
 * Kernels -- the work that test programs do, as PTX any driver can load
 *
 * Written by hand for sm_50 and PTX 6.0, so that old and new drivers take it.
 * The simulated driver knows the same names and parameters:
 *
 *   spin (u64 nanoseconds)
 *   fill (u32 *p, u64 count, u32 value)                      p[i] = value
 *   add  (u32 *p, u64 count, u32 value)                      p[i] += value
 *   check(u32 *p, u64 count, u32 expected, u32 *mismatches)
 *   watch(u32 *p, u64 count, u32 expected, u64 nanoseconds, u32 *mismatches)
 *   copy (u32 *to, u32 *from, u64 count)
 *   hold (u32 *flag, u32 wanted, u64 nanoseconds, u32 *gave_up)
 *   meet (u32 *mine, u32 *other, u32 value, u64 nanoseconds, u32 *gave_up)
 *
 * hold runs until *flag is at least what is wanted, whoever writes it; meet writes
 * *mine first, and then holds for *other. Both end in vain after that time, so
 * that a machine is never stuck, and add 1 to *gave_up.
 *
 * check and watch add to *mismatches once for every word seen with another
 * value; watch reads all words again and again until the time is over. Every
 * kernel walks its words with the stride of the whole grid. Reads are volatile:
 * a cache must not hide what another kernel wrote.
 */

/* %rd1 = p, %rd2 = count, %rd3 = first index of this thread, %rd4 = stride */
#define CU_PTX_WALK                                                                                \
        "        mov.u32         %r1, %ctaid.x;\n"                                                 \
        "        mov.u32         %r2, %ntid.x;\n"                                                  \
        "        mov.u32         %r3, %tid.x;\n"                                                   \
        "        mad.lo.u32      %r4, %r1, %r2, %r3;\n"                                            \
        "        cvt.u64.u32     %rd3, %r4;\n"                                                     \
        "        mov.u32         %r5, %nctaid.x;\n"                                                \
        "        mul.lo.u32      %r5, %r5, %r2;\n"                                                 \
        "        cvt.u64.u32     %rd4, %r5;\n"

#define CU_PTX_REGISTERS                                                                           \
        "        .reg .pred      %p<4>;\n"                                                         \
        "        .reg .b32       %r<12>;\n"                                                        \
        "        .reg .b64       %rd<16>;\n"

/* %rd1 = flag, %r6 = what is wanted, %rd8 = how long, %rd7 = where to say that it was in vain */
#define CU_PTX_HOLD                                                                                \
        "        mov.u64         %rd9, %globaltimer;\n"                                            \
        "        add.u64         %rd9, %rd9, %rd8;\n"                                              \
        "again:\n"                                                                                 \
        "        ld.volatile.global.u32 %r7, [%rd1];\n"                                            \
        "        setp.ge.u32     %p1, %r7, %r6;\n"                                                 \
        "        @%p1 bra        done;\n"                                                          \
        "        mov.u64         %rd10, %globaltimer;\n"                                           \
        "        setp.lt.u64     %p2, %rd10, %rd9;\n"                                              \
        "        @%p2 bra        again;\n"                                                         \
        "        atom.global.add.u32 %r8, [%rd7], 1;\n"                                            \
        "done:\n"                                                                                  \
        "        ret;\n"

static const char cu_ptx[] =
        ".version 6.0\n"
        ".target sm_50\n"
        ".address_size 64\n"
        "\n"
        ".visible .entry spin(.param .u64 nanoseconds)\n"
        "{\n" CU_PTX_REGISTERS "        ld.param.u64    %rd1, [nanoseconds];\n"
        "        mov.u64         %rd2, %globaltimer;\n"
        "        add.u64         %rd2, %rd2, %rd1;\n"
        "again:\n"
        "        mov.u64         %rd3, %globaltimer;\n"
        "        setp.lt.u64     %p1, %rd3, %rd2;\n"
        "        @%p1 bra        again;\n"
        "        ret;\n"
        "}\n"
        "\n"
        ".visible .entry fill(.param .u64 p, .param .u64 count, .param .u32 value)\n"
        "{\n" CU_PTX_REGISTERS "        ld.param.u64    %rd1, [p];\n"
        "        ld.param.u64    %rd2, [count];\n"
        "        ld.param.u32    %r6, [value];\n" CU_PTX_WALK "next:\n"
        "        setp.ge.u64     %p1, %rd3, %rd2;\n"
        "        @%p1 bra        done;\n"
        "        shl.b64         %rd5, %rd3, 2;\n"
        "        add.u64         %rd6, %rd1, %rd5;\n"
        "        st.volatile.global.u32 [%rd6], %r6;\n"
        "        add.u64         %rd3, %rd3, %rd4;\n"
        "        bra             next;\n"
        "done:\n"
        "        ret;\n"
        "}\n"
        "\n"
        ".visible .entry add(.param .u64 p, .param .u64 count, .param .u32 value)\n"
        "{\n" CU_PTX_REGISTERS "        ld.param.u64    %rd1, [p];\n"
        "        ld.param.u64    %rd2, [count];\n"
        "        ld.param.u32    %r6, [value];\n" CU_PTX_WALK "next:\n"
        "        setp.ge.u64     %p1, %rd3, %rd2;\n"
        "        @%p1 bra        done;\n"
        "        shl.b64         %rd5, %rd3, 2;\n"
        "        add.u64         %rd6, %rd1, %rd5;\n"
        "        ld.volatile.global.u32 %r7, [%rd6];\n"
        "        add.u32         %r7, %r7, %r6;\n"
        "        st.volatile.global.u32 [%rd6], %r7;\n"
        "        add.u64         %rd3, %rd3, %rd4;\n"
        "        bra             next;\n"
        "done:\n"
        "        ret;\n"
        "}\n"
        "\n"
        ".visible .entry check(.param .u64 p, .param .u64 count, .param .u32 expected,\n"
        "                      .param .u64 mismatches)\n"
        "{\n" CU_PTX_REGISTERS "        ld.param.u64    %rd1, [p];\n"
        "        ld.param.u64    %rd2, [count];\n"
        "        ld.param.u32    %r6, [expected];\n"
        "        ld.param.u64    %rd7, [mismatches];\n" CU_PTX_WALK "next:\n"
        "        setp.ge.u64     %p1, %rd3, %rd2;\n"
        "        @%p1 bra        done;\n"
        "        shl.b64         %rd5, %rd3, 2;\n"
        "        add.u64         %rd6, %rd1, %rd5;\n"
        "        ld.volatile.global.u32 %r7, [%rd6];\n"
        "        setp.eq.u32     %p2, %r7, %r6;\n"
        "        @%p2 bra        same;\n"
        "        atom.global.add.u32 %r8, [%rd7], 1;\n"
        "same:\n"
        "        add.u64         %rd3, %rd3, %rd4;\n"
        "        bra             next;\n"
        "done:\n"
        "        ret;\n"
        "}\n"
        "\n"
        ".visible .entry watch(.param .u64 p, .param .u64 count, .param .u32 expected,\n"
        "                      .param .u64 nanoseconds, .param .u64 mismatches)\n"
        "{\n" CU_PTX_REGISTERS "        ld.param.u64    %rd1, [p];\n"
        "        ld.param.u64    %rd2, [count];\n"
        "        ld.param.u32    %r6, [expected];\n"
        "        ld.param.u64    %rd8, [nanoseconds];\n"
        "        ld.param.u64    %rd7, [mismatches];\n" CU_PTX_WALK
        "        mov.u64         %rd9, %globaltimer;\n"
        "        add.u64         %rd9, %rd9, %rd8;\n"
        "        mov.u64         %rd11, %rd3;\n"
        "round:\n"
        "        mov.u64         %rd3, %rd11;\n"
        "next:\n"
        "        setp.ge.u64     %p1, %rd3, %rd2;\n"
        "        @%p1 bra        walked;\n"
        "        shl.b64         %rd5, %rd3, 2;\n"
        "        add.u64         %rd6, %rd1, %rd5;\n"
        "        ld.volatile.global.u32 %r7, [%rd6];\n"
        "        setp.eq.u32     %p2, %r7, %r6;\n"
        "        @%p2 bra        same;\n"
        "        atom.global.add.u32 %r8, [%rd7], 1;\n"
        "same:\n"
        "        add.u64         %rd3, %rd3, %rd4;\n"
        "        bra             next;\n"
        "walked:\n"
        "        mov.u64         %rd10, %globaltimer;\n"
        "        setp.lt.u64     %p3, %rd10, %rd9;\n"
        "        @%p3 bra        round;\n"
        "        ret;\n"
        "}\n"
        "\n"
        ".visible .entry copy(.param .u64 to, .param .u64 from, .param .u64 count)\n"
        "{\n" CU_PTX_REGISTERS "        ld.param.u64    %rd1, [to];\n"
        "        ld.param.u64    %rd7, [from];\n"
        "        ld.param.u64    %rd2, [count];\n" CU_PTX_WALK "next:\n"
        "        setp.ge.u64     %p1, %rd3, %rd2;\n"
        "        @%p1 bra        done;\n"
        "        shl.b64         %rd5, %rd3, 2;\n"
        "        add.u64         %rd6, %rd7, %rd5;\n"
        "        ld.volatile.global.u32 %r7, [%rd6];\n"
        "        add.u64         %rd6, %rd1, %rd5;\n"
        "        st.volatile.global.u32 [%rd6], %r7;\n"
        "        add.u64         %rd3, %rd3, %rd4;\n"
        "        bra             next;\n"
        "done:\n"
        "        ret;\n"
        "}\n"
        "\n"
        ".visible .entry hold(.param .u64 flag, .param .u32 wanted, .param .u64 nanoseconds,\n"
        "                     .param .u64 gave_up)\n"
        "{\n" CU_PTX_REGISTERS "        ld.param.u64    %rd1, [flag];\n"
        "        ld.param.u32    %r6, [wanted];\n"
        "        ld.param.u64    %rd8, [nanoseconds];\n"
        "        ld.param.u64    %rd7, [gave_up];\n" CU_PTX_HOLD "}\n"
        "\n"
        ".visible .entry meet(.param .u64 mine, .param .u64 other, .param .u32 value,\n"
        "                     .param .u64 nanoseconds, .param .u64 gave_up)\n"
        "{\n" CU_PTX_REGISTERS "        ld.param.u64    %rd2, [mine];\n"
        "        ld.param.u64    %rd1, [other];\n"
        "        ld.param.u32    %r6, [value];\n"
        "        ld.param.u64    %rd8, [nanoseconds];\n"
        "        ld.param.u64    %rd7, [gave_up];\n"
        "        st.volatile.global.u32 [%rd2], %r6;\n"
        "        membar.sys;\n" CU_PTX_HOLD "}\n";

#endif
