/* zstd there and back again: ARGUMENT kilobytes, levels 1, 3 and 19. */
#include "text.h"
#include "zstd.h"

int main(int argc, char **argv) {
    size_t size = 1024u * (size_t)atoi(argc > 1 ? argv[1] : "100");
    size_t room = ZSTD_compressBound(size);
    unsigned char *text = text_of(size);
    unsigned char *packed = malloc(room), *back = malloc(size);
    static const int levels[] = {1, 3, 19};
    for (int at = 0; at < 3; at++) {
        size_t packed_size = ZSTD_compress(packed, room, text, size, levels[at]);
        must(!ZSTD_isError(packed_size), "does not compress");
        size_t back_size = ZSTD_decompress(back, size, packed, packed_size);
        must(back_size == size && !memcmp(text, back, size), "comes back changed");
        printf("level %d: %zu -> %zu\n", levels[at], size, packed_size);
        packed[packed_size / 2] ^= 0x10;
        back_size = ZSTD_decompress(back, size, packed, packed_size - 1);
        must(ZSTD_isError(back_size), "damage goes unnoticed");
    }
    return 0;
}
