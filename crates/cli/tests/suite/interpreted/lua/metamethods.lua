local V = {}
V.__index = V
V.__add = function(a, b)
  return setmetatable({ x = a.x + b.x }, V)
end
V.__lt = function(a, b)
  return a.x < b.x
end
V.__le = function(a, b)
  return a.x <= b.x
end
V.__eq = function(a, b)
  return a.x == b.x
end
V.__concat = function(a, b)
  return "v" .. tostring(b)
end
V.__call = function(self, n)
  return self.x + n
end
V.__len = function(self)
  return self.x
end
V.__unm = function(self)
  return setmetatable({ x = -self.x }, V)
end
V.__newindex = function(t, k, v)
  rawset(t, k, v * 2)
end
function V.new(x)
  return setmetatable({ x = x }, V)
end
function V:get()
  return self.x
end
local total = 0
for i = 1, 20 do
  local p = V.new(i) + V.new(2)
  if p < V.new(5) then
    total = total + p:get()
  elseif p <= V.new(9) or i == 15 then
    total = total - 1
  else
    total = total + 2
  end
  if p == V.new(10) then
    total = total + 100
  end
  if not (p > V.new(12)) then
    p.y = i
    total = total + p.y
  end
  local s = p .. i
  total = total + #p + p(3) + #s + (-p).x
end
local proxy = setmetatable({}, {
  __index = function(_, k)
    if k == "a" then
      return 1
    end
    return 2
  end,
})
print(total, proxy.a + proxy.b)
