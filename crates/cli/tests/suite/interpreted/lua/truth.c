/* What Lua itself says: `truth OUT PROGRAM [ARGUMENTS]` runs a program with a line hook, and writes how often the
 * hook was called for each line of each file. Only the public interface is used. */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
    char *source;
    int number;
    unsigned long count;
};

enum { SIZE = 1 << 16 };
static struct line lines[SIZE];

static void hook(lua_State *L, lua_Debug *ar) {
    if (!lua_getinfo(L, "S", ar))
        abort();
    size_t at = (size_t)ar->currentline * 31;
    for (const char *c = ar->source; *c; c++)
        at = at * 33 + (unsigned char)*c;
    for (;; at++) {
        struct line *it = &lines[at % SIZE];
        if (!it->source) {
            it->source = strdup(ar->source);
            it->number = ar->currentline;
        }
        if (it->number == ar->currentline && !strcmp(it->source, ar->source)) {
            it->count++;
            return;
        }
    }
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    lua_createtable(L, argc, 0);
    for (int i = 2; i < argc; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i - 2);
    }
    lua_setglobal(L, "arg");
    int failed = luaL_loadfile(L, argv[2]);
    if (!failed) {
        lua_sethook(L, hook, LUA_MASKLINE, 0);
        for (int i = 3; i < argc; i++)
            lua_pushstring(L, argv[i]);
        failed = lua_pcall(L, argc - 3, 0, 0);
        lua_sethook(L, NULL, 0, 0);
    }
    if (failed)
        fprintf(stderr, "%s\n", lua_tostring(L, -1));
    FILE *out = fopen(argv[1], "w");
    if (!out)
        return 2;
    for (size_t i = 0; i < SIZE; i++)
        if (lines[i].source && lines[i].source[0] == '@')
            fprintf(out, "%s\t%d\t%lu\n", lines[i].source + 1, lines[i].number, lines[i].count);
    fclose(out);
    return failed;
}
