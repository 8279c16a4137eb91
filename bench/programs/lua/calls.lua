local n = tonumber((...))
local function fib(k)
  if k < 2 then
    return k
  end
  return fib(k - 1) + fib(k - 2)
end
local sum = 0
for _ = 1, n do
  sum = sum + fib(20)
end
print(sum)
