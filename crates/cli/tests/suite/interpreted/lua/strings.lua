local text = [[
the quick brown fox
jumps over the lazy dog
and the dog sleeps
]]
local counts = {}
for word in text:gmatch("%a+") do
  counts[word] = (counts[word] or 0) + 1
end
local words = {}
for word in text:gmatch("%a+") do
  if counts[word] > 0 and not words[word] then
    words[#words + 1] = word
    words[word] = true
  end
end
table.sort(words, function(a, b)
  if counts[a] ~= counts[b] then
    return counts[a] > counts[b]
  end
  return a < b
end)
for i, word in ipairs(words) do
  if i > 3 then
    break
  end
  print(word, counts[word])
end
local upper = text:gsub("%a+", function(word)
  if #word > 3 then
    return word:upper()
  end
end)
local function split(s, by)
  local parts = {}
  local from = 1
  while true do
    local a, b = s:find(by, from, true)
    if not a then
      break
    end
    parts[#parts + 1] = s:sub(from, a - 1)
    from = b + 1
  end
  parts[#parts + 1] = s:sub(from)
  return parts
end
local lines = split(upper, "\n")
print(#lines, lines[2])
local bytes = {}
for i = 1, 10 do
  bytes[i] = string.char(96 + i)
end
print(table.concat(bytes, ","), ("%5.2f|%d|%s"):format(3.14159, 42, "x"))
local reversed = ""
for c in ("lua"):gmatch(".") do
  reversed = c .. reversed
end
print(reversed)
