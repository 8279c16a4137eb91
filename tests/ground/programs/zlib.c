/* zlib there and back again: ARGUMENT kilobytes, every level. */
#include "text.h"
#include "zlib.h"

int main(int argc, char **argv) {
    uLong size = 1024ul * (uLong)atoi(argc > 1 ? argv[1] : "100");
    uLong room = compressBound(size);
    unsigned char *text = text_of(size);
    unsigned char *packed = malloc(room), *back = malloc(size);
    for (int level = 0; level <= 9; level++) {
        uLong packed_size = room, back_size = size;
        must(compress2(packed, &packed_size, text, size, level) == Z_OK, "does not compress");
        must(uncompress(back, &back_size, packed, packed_size) == Z_OK, "does not decompress");
        must(back_size == size && !memcmp(text, back, size), "comes back changed");
        printf("level %d: %lu -> %lu\n", level, size, packed_size);
    }
    packed[40] ^= 0x55;
    uLong back_size = size;
    must(uncompress(back, &back_size, packed, room) != Z_OK, "damage goes unnoticed");
    printf("crc %lx adler %lx\n", crc32(0, text, (uInt)size), adler32(1, text, (uInt)size));
    return 0;
}
