-- Runs a program while Lua's line hook counts its lines.
local counts = {}
local program = table.remove(arg, 1)
local info = debug.getinfo
debug.sethook(function(_, line)
  local file = info(2, "S").source
  local lines = counts[file]
  if not lines then
    lines = {}
    counts[file] = lines
  end
  lines[line] = (lines[line] or 0) + 1
end, "l")
assert(loadfile(program))(table.unpack(arg))
debug.sethook()
