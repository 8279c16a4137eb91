/* Two threads in the same functions on different data, all the time: sorting,
   and counting words in a hash table. ARGUMENT rounds in each. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBERS = 40000, SLOTS = 4096 };

struct work {
    unsigned state;
    int rounds;
    unsigned long long sum;
    unsigned numbers[NUMBERS];
    unsigned keys[SLOTS], counts[SLOTS];
};

__attribute__((noinline)) static unsigned random_number(struct work *work) {
    work->state = work->state * 1664525u + 1013904223u;
    return work->state >> 8;
}

__attribute__((noinline)) static int is_less(unsigned a, unsigned b) { return a < b; }

__attribute__((noinline)) static void sort(unsigned *from, unsigned *to) {
    while (to - from > 12) {
        unsigned pivot = from[(to - from) / 2], *left = from, *right = to - 1;
        while (left <= right) {
            while (is_less(*left, pivot))
                left++;
            while (is_less(pivot, *right))
                right--;
            if (left <= right) {
                unsigned kept = *left;
                *left++ = *right;
                *right-- = kept;
            }
        }
        if (right + 1 - from < to - left) {
            sort(from, right + 1);
            from = left;
        } else {
            sort(left, to);
            to = right + 1;
        }
    }
    for (unsigned *at = from + 1; at < to; at++)
        for (unsigned *low = at; low > from && is_less(*low, low[-1]); low--) {
            unsigned kept = *low;
            *low = low[-1];
            low[-1] = kept;
        }
}

__attribute__((noinline)) static unsigned hash(unsigned key) {
    key ^= key >> 13;
    key *= 0x9e3779b1u;
    return key ^ key >> 16;
}

__attribute__((noinline)) static unsigned *slot(struct work *work, unsigned key) {
    unsigned at = hash(key) % SLOTS;
    while (work->counts[at] && work->keys[at] != key)
        at = (at + 1) % SLOTS;
    work->keys[at] = key;
    return &work->counts[at];
}

static void *worker(void *argument) {
    struct work *work = argument;
    for (int round = 0; round < work->rounds; round++) {
        for (int at = 0; at < NUMBERS; at++)
            work->numbers[at] = random_number(work);
        sort(work->numbers, work->numbers + NUMBERS);
        memset(work->counts, 0, sizeof work->counts);
        for (int at = 0; at < NUMBERS; at++)
            ++*slot(work, work->numbers[at] % 3000);
        for (int at = 0; at < SLOTS; at++)
            work->sum += (unsigned long long)work->keys[at] * work->counts[at];
    }
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    struct work *work[2];
    for (int at = 0; at < 2; at++) {
        work[at] = calloc(1, sizeof *work[at]);
        work[at]->state = 7u + (unsigned)at;
        work[at]->rounds = atoi(argc > 1 ? argv[1] : "1");
        if (pthread_create(&threads[at], NULL, worker, work[at]))
            return 1;
    }
    for (int at = 0; at < 2; at++) {
        pthread_join(threads[at], NULL);
        printf("%llu\n", work[at]->sum);
    }
    return 0;
}
