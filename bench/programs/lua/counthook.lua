-- Runs a program while Lua's count hook counts its instructions, by line.
local counts = {}
local program = table.remove(arg, 1)
local info = debug.getinfo
debug.sethook(function()
  local now = info(2, "Sl")
  local lines = counts[now.source]
  if not lines then
    lines = {}
    counts[now.source] = lines
  end
  lines[now.currentline] = (lines[now.currentline] or 0) + 1
end, "", 1)
assert(loadfile(program))(table.unpack(arg))
debug.sethook()
