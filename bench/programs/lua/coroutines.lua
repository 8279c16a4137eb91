local n = tonumber((...))
local function numbers(limit)
  return coroutine.wrap(function()
    for i = 1, limit do
      coroutine.yield(i)
    end
  end)
end
local sum = 0
for _ = 1, n do
  for i in numbers(1000) do
    if i % 3 == 0 then
      sum = sum + i
    end
  end
end
print(sum)
