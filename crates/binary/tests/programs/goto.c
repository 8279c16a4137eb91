#include <stdio.h>
int run(const unsigned char *program) {
    static const void *const labels[] = { &&stop, &&add, &&twice, &&less };
    int value = 1;
    goto *labels[*program++];
add:   value += 3; goto *labels[*program++];
twice: value *= 2; goto *labels[*program++];
less:  value -= 1; goto *labels[*program++];
stop:  return value;
}
int main(void) { return printf("%d", run((const unsigned char *)"\1\2\3\0")); }
