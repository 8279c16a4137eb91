/* bzip2 there and back again: ARGUMENT kilobytes, block sizes 1 and 9. */
#include "bzlib.h"
#include "text.h"

/* Called by bzlib when it is built without stdio. */
void bz_internal_error(int code) { exit(100 + code); }

int main(int argc, char **argv) {
    unsigned size = 1024u * (unsigned)atoi(argc > 1 ? argv[1] : "100");
    unsigned room = size + size / 50 + 1000;
    unsigned char *text = text_of(size);
    char *packed = malloc(room), *back = malloc(size);
    for (int level = 1; level <= 9; level += 8) {
        unsigned packed_size = room, back_size = size;
        must(BZ2_bzBuffToBuffCompress(packed, &packed_size, (char *)text, size, level, 0, 0) == BZ_OK,
             "does not compress");
        must(BZ2_bzBuffToBuffDecompress(back, &back_size, packed, packed_size, 0, level == 1) == BZ_OK,
             "does not decompress");
        must(back_size == size && !memcmp(text, back, size), "comes back changed");
        printf("level %d: %u -> %u\n", level, size, packed_size);
    }
    packed[200] ^= 1; /* a damaged file must be noticed */
    unsigned packed_size = room / 2, back_size = size;
    must(BZ2_bzBuffToBuffDecompress(back, &back_size, packed, packed_size, 0, 0) != BZ_OK,
         "damage goes unnoticed");
    return 0;
}
