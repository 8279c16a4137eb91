local n = tonumber((...))
local count = 0
for _ = 1, n do
  local is = {}
  for i = 2, 5000 do
    is[i] = true
  end
  for i = 2, 70 do
    if is[i] then
      for j = i * i, 5000, i do
        is[j] = false
      end
    end
  end
  for i = 2, 5000 do
    if is[i] then
      count = count + 1
    end
  end
end
print(count)
