// What the C library does according to where strings and the heap are, which is not the same for every
// judge.
#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size) {
    for (size_t i = 0; i < size; i++)
        ((char *)to)[i] = ((const char *)from)[i];
    return to;
}

// By its library's name, too: what prints numbers copies them from the stack.
void *__mempcpy(void *restrict to, const void *restrict from, size_t size) {
    return (char *)memcpy(to, from, size) + size;
}

void *mempcpy(void *restrict to, const void *restrict from, size_t size) {
    return __mempcpy(to, from, size);
}

void *memmove(void *to, const void *from, size_t size) {
    if (to < from)
        return memcpy(to, from, size);
    while (size--)
        ((char *)to)[size] = ((const char *)from)[size];
    return to;
}

void *memset(void *at, int byte, size_t size) {
    for (size_t i = 0; i < size; i++)
        ((char *)at)[i] = (char)byte;
    return at;
}

size_t strlen(const char *text) {
    size_t length = 0;
    while (text[length])
        length++;
    return length;
}

int strncmp(const char *a, const char *b, size_t size) {
    for (; size; a++, b++, size--)
        if (*a != *b || !*a)
            return (unsigned char)*a - (unsigned char)*b;
    return 0;
}

int strcmp(const char *a, const char *b) { return strncmp(a, b, -1); }

static int has(const char *all, char wanted) {
    while (*all && *all != wanted)
        all++;
    return *all;
}

char *strchr(const char *text, int wanted) {
    while (*text && *text != (char)wanted)
        text++;
    return *text == (char)wanted ? (char *)text : NULL;
}

char *strrchr(const char *text, int wanted) {
    char *last = NULL;
    for (;; text++) {
        if (*text == (char)wanted)
            last = (char *)text;
        if (!*text)
            return last;
    }
}

size_t strspn(const char *text, const char *all) {
    size_t length = 0;
    while (text[length] && has(all, text[length]))
        length++;
    return length;
}

size_t strcspn(const char *text, const char *all) {
    size_t length = 0;
    while (text[length] && !has(all, text[length]))
        length++;
    return length;
}

int memcmp(const void *a, const void *b, size_t size) {
    for (size_t i = 0; i < size; i++) {
        int difference = ((const unsigned char *)a)[i] - ((const unsigned char *)b)[i];
        if (difference)
            return difference;
    }
    return 0;
}

static _Alignas(16) char heap[1 << 30];
static size_t used;

// In front of each piece there is its size.
void *malloc(size_t size) {
    size_t whole = 16 + (size + 15) / 16 * 16;
    if (size > sizeof heap || whole > sizeof heap - used)
        return NULL;
    char *piece = heap + used + 16;
    used += whole;
    *(size_t *)(piece - 16) = size;
    return piece;
}

void free(void *piece) { (void)piece; }

void *calloc(size_t count, size_t size) { return malloc(count * size); }

void *realloc(void *piece, size_t size) {
    char *larger = malloc(size);
    if (larger && piece) {
        size_t before = ((size_t *)piece)[-2];
        memcpy(larger, piece, before < size ? before : size);
    }
    return larger;
}
