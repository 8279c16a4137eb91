local n = tonumber((...))
local function risky(i)
  if i % 7 == 0 then
    error({ code = i })
  end
  return i
end
local sum = 0
for _ = 1, n do
  for i = 1, 500 do
    local ok, it = pcall(risky, i)
    sum = sum + (ok and it or it.code)
  end
end
print(sum)
