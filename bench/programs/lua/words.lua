local n = tonumber((...))
local text = ("the quick brown fox jumps over the lazy dog and sleeps "):rep(20)
local total = 0
for _ = 1, n do
  local counts = {}
  for word in text:gmatch("%a+") do
    counts[word] = (counts[word] or 0) + 1
  end
  local parts = {}
  for word, count in pairs(counts) do
    parts[#parts + 1] = word .. "=" .. count
  end
  table.sort(parts)
  total = total + #table.concat(parts, ",")
end
print(total)
