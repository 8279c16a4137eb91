local function va(...)
  local a, b = ...
  local n = select("#", ...)
  local t = { ... }
  for k, v in ipairs(t) do
    n = n + v
  end
  return n, a, b
end
local total = 0
for i = 1, 5 do
  total = total + va(i, i, i)
end
local function pass(...)
  if select("#", ...) == 0 then
    return 0
  end
  local first = ...
  return first + pass(select(2, ...))
end
total = total + pass(1, 2, 3, 4)
local packed = table.pack(va(9, 8))
for i = 1, packed.n do
  total = total + packed[i]
end
local function named(options)
  local width = options.width or 10
  local height = options.height or
    width * 2
  return width * height
end
total = total
  + named({ width = 3 })
  + named({
    width = 2,
    height = 5,
  })
  + named({})
local big = {
  1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
  11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
  21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
  31, 32, 33, 34, 35, 36, 37, 38, 39, 40,
  41, 42, 43, 44, 45, 46, 47, 48, 49, 50,
  51, 52, 53, 54, 55, 56, 57, 58, 59, 60,
  va(1, 2),
}
print(total, #big, math.max(table.unpack(big)))
