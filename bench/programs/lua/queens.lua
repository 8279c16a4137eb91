local n = tonumber((...))
local function place(board, row, size)
  if row > size then
    return 1
  end
  local found = 0
  for column = 1, size do
    local safe = true
    for r = 1, row - 1 do
      local c = board[r]
      if c == column or c - r == column - row or c + r == column + row then
        safe = false
        break
      end
    end
    if safe then
      board[row] = column
      found = found + place(board, row + 1, size)
    end
  end
  return found
end
local sum = 0
for _ = 1, n do
  sum = sum + place({}, 1, 7)
end
print(sum)
