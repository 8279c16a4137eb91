/* What a program saw by itself: counts and sums by tally and key, printed in the end. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

/* Kinds of keys. */
#define NUMBER 0
#define UNREADABLE 1
#define BELOW 2
#define ABOVE 3
#define JUMPED 4

struct slot { const char *tally; long kind, key, count, sum; };
enum { SLOTS = 1 << 12 };

/* Shared, so that what children saw is in it, too. */
static struct slot *slots;
static pthread_mutex_t *mutex;

__attribute__((constructor)) static void make_slots(void)
{
    size_t size = SLOTS * sizeof *slots + sizeof *mutex;
    slots = (struct slot *)mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    mutex = (pthread_mutex_t *)(slots + SLOTS);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(mutex, &attributes);
}

__attribute__((noinline, unused))
static void saw_often(const char *tally, long kind, long key, long count, long sum)
{
    if (!count)
        return;
    pthread_mutex_lock(mutex);
    struct slot *slot = slots;
    while (slot->tally && (slot->tally != tally || slot->kind != kind || slot->key != key))
        slot++;
    if (slot >= slots + SLOTS - 1)
        __builtin_trap();
    slot->tally = tally;
    slot->kind = kind;
    slot->key = key;
    slot->count += count;
    slot->sum += sum;
    pthread_mutex_unlock(mutex);
}

__attribute__((noinline, unused))
static void saw(const char *tally, long kind, long key, long sum)
{
    saw_often(tally, kind, key, 1, sum);
}

__attribute__((noinline, unused)) static void tell(void)
{
    static const char *const kinds[] = {
        0, "(unreadable)", "(below)", "(above)", "(ended by a jump)"
    };
    for (struct slot *slot = slots; slot->tally; slot++) {
        printf("%s\t", slot->tally);
        if (slot->kind)
            printf("%s", kinds[slot->kind]);
        else
            printf("%ld", slot->key);
        printf("\t%ld\t%ld\n", slot->count, slot->sum);
    }
    fflush(stdout);
}

/* The same numbers in every run. */
__attribute__((unused)) static unsigned long dice(unsigned long *seed)
{
    *seed = *seed * 6364136223846793005 + 1442695040888963407;
    return *seed >> 33;
}
