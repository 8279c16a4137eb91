/* A Lua that runs one file: ARGUMENTS are the file and what it is given. */
#include <stdio.h>

#include "lauxlib.h"
#include "lua.h"
#include "lualib.h"

int main(int argc, char **argv) {
    lua_State *lua = luaL_newstate();
    if (!lua || argc < 2)
        return 2;
    luaL_openlibs(lua);
    int failed = luaL_loadfile(lua, argv[1]);
    for (int at = 2; !failed && at < argc; at++)
        lua_pushstring(lua, argv[at]);
    failed = failed || lua_pcall(lua, argc - 2, 0, 0);
    if (failed)
        fprintf(stderr, "%s\n", lua_tostring(lua, -1));
    lua_close(lua);
    return failed;
}
