/*
 * Questions that a program asks headcount about itself while it is counted.
 *
 *     long long before = headcount_query("instructions");
 *     work();
 *     long long after = headcount_query("instructions");
 *     if (before >= 0)
 *         printf("%lld instructions\n", after - before);
 *
 * A request is one instruction that does nothing: a long nop with a displacement that nobody else
 * writes, and the request in registers. Where nobody counts, that is all that happens, and the
 * answer is HEADCOUNT_NOT_COUNTED. Under `headcount run` or `headcount attach` the thread stops there,
 * is answered, and goes on; nothing that it asks changes any count.
 *
 * For C99 and later and for C++, with gcc and clang; other compilers and machines get constants. No
 * library is needed. docs/live.md says what the numbers mean.
 *
 * SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef HEADCOUNT_H
#define HEADCOUNT_H

/* It was done. */
#define HEADCOUNT_DONE 0LL
/* Nobody counts. */
#define HEADCOUNT_NOT_COUNTED (-1LL)
/* There is no such event, or it has no number that is sure to grow. */
#define HEADCOUNT_NO_SUCH_EVENT (-2LL)
/* The name is null, empty, longer than 200 bytes, not UTF-8, kept for something else, or has control
   characters. */
#define HEADCOUNT_BAD_NAME (-3LL)
/* Nothing is paused. */
#define HEADCOUNT_NOT_PAUSED (-4LL)
/* The headcount that counts is of another time, and does not know the request. */
#define HEADCOUNT_NO_SUCH_REQUEST (-5LL)
/* What is asked for is not counted in this run, or headcount is in trouble. */
#define HEADCOUNT_FAILED (-6LL)

#if defined(__GNUC__)
#define HEADCOUNT_INLINE static __inline__ __attribute__((__unused__))
#else
#define HEADCOUNT_INLINE static inline
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Not for use by programs. */
HEADCOUNT_INLINE long long headcount_ask(unsigned long request, const char *text)
{
#if defined(__GNUC__) && defined(__x86_64__) && defined(__linux__) && !defined(__ILP32__)
    long long answer = HEADCOUNT_NOT_COUNTED;
    /* The text ends with its zero, wherever that is. */
    __asm__ __volatile__("{nopl 0x31716368(%%rax,%%rax,1)|nop dword ptr [rax+rax*1+0x31716368]}"
                         : "+a"(answer)
                         : "D"(request), "S"(text), "d"(~0UL)
                         : "memory");
    return answer;
#else
    (void)request;
    (void)text;
    return HEADCOUNT_NOT_COUNTED;
#endif
}

/* How many events there have been in the whole run, in all its threads and processes, up to this
   moment: what `headcount query` would say, and `headcount report --events` names. Negative: one of the
   above. */
HEADCOUNT_INLINE long long headcount_query(const char *event)
{
    return headcount_ask(1UL, event);
}

/* Marks this moment with a name: a phase begins, as with `headcount mark`. */
HEADCOUNT_INLINE long long headcount_mark(const char *name)
{
    return headcount_ask(2UL, name);
}

/* What the run does from here on is left out of reports, until headcount_resume() has been called as
   often. */
HEADCOUNT_INLINE long long headcount_pause(void)
{
    return headcount_ask(3UL, (const char *)0);
}

/* Ends what headcount_pause() began. */
HEADCOUNT_INLINE long long headcount_resume(void)
{
    return headcount_ask(4UL, (const char *)0);
}

#ifdef __cplusplus
}
#endif

#endif
