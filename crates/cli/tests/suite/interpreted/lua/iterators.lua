local function range(n)
  local i = 0
  return function()
    i = i + 1
    if i <= n then
      return i
    end
  end
end
local function step(limit, i)
  if i < limit then
    return i + 1
  end
end
local total = 0
for i in range(5) do
  total = total + i
end
for i in step, 4, 0 do
  if i == 3 then
    break
  end
  total = total + i
end
local function map(f, it)
  return function(...)
    local v = it(...)
    if v ~= nil then
      return f(v)
    end
  end
end
for v in map(function(x)
  return x * x
end, range(4)) do
  total = total + v
end
local t = setmetatable({}, {
  __pairs = function()
    return function(_, k)
      k = (k or 0) + 1
      if k < 4 then
        return k, k * 10
      end
    end
  end,
})
for k, v in pairs(t) do
  total = total + k + v
end
local ok = pcall(function()
  for v in range(10) do
    if v == 5 then
      error("stop")
    end
    total = total + v
  end
end)
local keys = {}
local listed = { 3, 1, 2 }
local k = next(listed)
while k do
  keys[#keys + 1] = k
  k = next(listed, k)
end
print(total, ok)
