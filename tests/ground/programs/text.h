/* Bytes that look like a log written by people and machines: words of uneven
   frequency, numbers, repeated lines, and a little noise. The same every time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned text_state = 12345;

static unsigned text_random(unsigned below) {
    text_state = text_state * 1103515245u + 12345u;
    return (text_state >> 8) % below;
}

static unsigned char *text_of(size_t size) {
    static const char *words[] = {
        "the",   "count",  "of",     "every",   "block",   "is",     "exact", "or",
        "named", "refuse", "branch", "counter", "request", "served", "from",  "cache",
        "error", "retry",  "user",   "session", "opened",  "closed", "in",    "ms",
    };
    unsigned char *text = malloc(size + 64);
    size_t at = 0, line = 0;
    if (!text)
        exit(3);
    while (at < size) {
        unsigned kind = text_random(20);
        if (kind < 14) { /* low numbers twice as likely, as in any language */
            unsigned word = text_random(24);
            if (text_random(2))
                word = text_random(word + 1);
            at += (size_t)sprintf((char *)text + at, "%s ", words[word]);
        } else if (kind < 17) {
            at += (size_t)sprintf((char *)text + at, "%u ", text_random(100000));
        } else if (kind < 18) {
            text[at++] = (unsigned char)text_random(256);
        } else if (kind < 19 && at - line > 30 && at + 60 < size) {
            memmove(text + at, text + line, 30);
            at += 30;
        } else {
            text[at++] = '\n';
            line = at;
        }
    }
    return text;
}

static void must(int truth, const char *what) {
    if (!truth) {
        fprintf(stderr, "%s\n", what);
        exit(1);
    }
}
