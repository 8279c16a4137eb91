local n = tonumber((...))
local function matrix(size, seed)
  local m = {}
  for i = 1, size do
    local row = {}
    for j = 1, size do
      row[j] = (i * seed + j) % 10
    end
    m[i] = row
  end
  return m
end
local size = 30
local a, b = matrix(size, 3), matrix(size, 5)
local sum = 0
for _ = 1, n do
  for i = 1, size do
    local row = a[i]
    for j = 1, size do
      local dot = 0
      for k = 1, size do
        dot = dot + row[k] * b[k][j]
      end
      sum = sum + dot % 3
    end
  end
end
print(sum)
