local function producer(n)
  return coroutine.create(function()
    for i = 1, n do
      coroutine.yield(i)
    end
    return "end"
  end)
end
local function filter(source, wanted)
  return coroutine.wrap(function()
    while true do
      local ok, value = coroutine.resume(source)
      if not ok or value == "end" then
        return nil
      end
      if wanted(value) then
        coroutine.yield(value)
      end
    end
  end)
end
local sum = 0
for v in filter(producer(20), function(v)
  return v % 3 == 0
end) do
  sum = sum + v
end
local abandoned = producer(10)
for _ = 1, 3 do
  coroutine.resume(abandoned)
end
local L = setmetatable({}, {
  __lt = function(a, b)
    coroutine.yield("compare")
    return true
  end,
  __add = function(a, b)
    coroutine.yield("add")
    return 7
  end,
})
local co = coroutine.wrap(function()
  local n = 0
  if L < L then
    n = n + (L + L)
  end
  return n
end)
local said = {}
for i = 1, 3 do
  said[i] = co()
end
local echo = coroutine.create(function(a)
  while true do
    a = coroutine.yield(a * 2)
    if not a then
      return "done"
    end
  end
end)
for i = 1, 4 do
  local _, r = coroutine.resume(echo, i)
  sum = sum + r
end
coroutine.resume(echo)
local function tree(t)
  if t then
    tree(t[1])
    coroutine.yield(t[2])
    tree(t[3])
  end
end
for v in coroutine.wrap(function()
  tree({ { nil, 1 }, 2, { nil, 3 } })
end) do
  sum = sum * 2 + v
end
print(sum, said[1], said[2], said[3])
