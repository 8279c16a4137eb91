/* LZ4 there and back again: ARGUMENT kilobytes, fast and slow. */
#include "text.h"
#include "lz4.h"
#include "lz4hc.h"

int main(int argc, char **argv) {
    int size = 1024 * atoi(argc > 1 ? argv[1] : "60");
    int room = LZ4_compressBound(size);
    char *text = (char *)text_of((unsigned long)size);
    char *packed = malloc((unsigned long)room), *back = malloc((unsigned long)size);
    for (int level = 0; level <= 12; level += 2) {
        int packed_size = level == 0 ? LZ4_compress_default(text, packed, size, room)
                                     : LZ4_compress_HC(text, packed, size, room, level);
        must(packed_size > 0, "does not compress");
        int back_size = LZ4_decompress_safe(packed, back, packed_size, size);
        must(back_size == size && !memcmp(text, back, (unsigned long)size), "comes back changed");
        printf("level %d: %d -> %d\n", level, size, packed_size);
    }
    must(LZ4_decompress_safe(packed, back, 40, size) < size, "damage goes unnoticed");
    return 0;
}
