//~ length: LINE:here(node->length)
//~ kind: LINE:here(node->kind)
//~ deep: LINE:here(node->next->inner.small)
//~ element: LINE:here(table[node->kind].weight)
//~ second: LINE:here(node->pair[1])
//~ global: LINE:here(total % 7)
//~ letter: LINE:here(letters[node->length & 3])
//~ flag: LINE:here(node->is_big)
//~ entry: walk(node->length)
//~ static: LINE:here(rounds)
//~ own: LINE:here(own)
//~ ownfield: LINE:here(pairs[1].inner.small)
#include <stdbool.h>
#include "seen.h"

enum kind { LEAF, BRANCH, ROOT };
struct inner { char name[3]; signed char small; };
struct node {
    struct node *next;
    unsigned short length;
    enum kind kind;
    struct inner inner;
    int pair[2];
    bool is_big;
};
struct weight { char unused; long weight; };

struct weight table[3] = {{1, -5}, {2, 100}, {3, 1l << 40}};
long total;
static char letters[] = "dabc";
static int rounds;
static __thread short own = -3;
__thread struct node pairs[2];

__attribute__((noipa)) void use(struct node *node, long by)
{
    node->pair[1] += (int)by;
    node->length += 3;
}

__attribute__((noipa)) long walk(struct node *node, long by)
{
    saw("entry", NUMBER, node->length, 0);
    long sum = 0;
    for (int i = 0; i < 5; i++) {
        saw("length", NUMBER, node->length, 0);
        saw("kind", NUMBER, node->kind, 0);
        saw("deep", NUMBER, node->next->inner.small, 0);
        saw("element", NUMBER, table[node->kind].weight, 0);
        saw("second", NUMBER, node->pair[1], 0);
        saw("global", NUMBER, total % 7, 0);
        saw("letter", NUMBER, letters[node->length & 3], 0);
        saw("flag", NUMBER, node->is_big, 0);
        saw("static", NUMBER, rounds, 0);
        saw("own", NUMBER, own, 0);
        saw("ownfield", NUMBER, pairs[1].inner.small, 0);
        use(node, by + i); //@here
        sum += node->pair[1];
        total += i;
        rounds ^= 1;
        own = (own + 1) % 5;
        pairs[1].inner.small -= own;
        node->is_big ^= 1;
    }
    return sum;
}

static void *work(void *seed)
{
    unsigned long own_seed = (unsigned long)seed;
    struct node nodes[2] = {{&nodes[1], 1, ROOT, {"a", -7}, {1, 2}, true},
                            {&nodes[0], 9, BRANCH, {"b", 100}, {3, -4}, false}};
    for (int i = 0; i < 50; i++) {
        nodes[0].kind = dice(&own_seed) % 3;
        walk(&nodes[0], i);
        walk(&nodes[1], -i);
        nodes[1].pair[1] = i;
    }
    return 0;
}

int main(void)
{
    work((void *)3);
    pthread_t other;
    pthread_create(&other, 0, work, (void *)4);
    pthread_join(other, 0);
    tell();
    return 0;
}
