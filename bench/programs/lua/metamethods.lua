local n = tonumber((...))
local V = {}
V.__index = V
V.__add = function(a, b)
  return setmetatable({ x = a.x + b.x, y = a.y + b.y }, V)
end
V.__eq = function(a, b)
  return a.x == b.x and a.y == b.y
end
V.__lt = function(a, b)
  return a.x < b.x
end
local sum = 0
for _ = 1, n do
  local at = setmetatable({ x = 0, y = 0 }, V)
  local step = setmetatable({ x = 1, y = 2 }, V)
  for i = 1, 300 do
    local next = at + step
    if at < next and not (at == next) then
      sum = sum + next.y
    end
    at = next
  end
end
print(sum)
