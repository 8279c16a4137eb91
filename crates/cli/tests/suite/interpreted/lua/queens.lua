local N = 6
local solutions = 0
local function safe(board, row, column)
  for r = 1, row - 1 do
    local c = board[r]
    if c == column or c - r == column - row or c + r == column + row then
      return false
    end
  end
  return true
end
local function place(board, row)
  if row > N then
    solutions = solutions + 1
    return
  end
  for column = 1, N do
    if safe(board, row, column) then
      board[row] = column
      place(board, row + 1)
    end
  end
end
place({}, 1)
print(solutions)
local moves = 0
local function hanoi(n, from, to, by)
  if n > 0 then
    hanoi(n - 1, from, by, to)
    moves = moves + 1
    hanoi(n - 1, by, to, from)
  end
end
hanoi(6, "a", "b", "c")
local memo = {}
local function ways(n)
  if n <= 1 then
    return 1
  end
  if not memo[n] then
    memo[n] = ways(n - 1) + ways(n - 2)
  end
  return memo[n]
end
print(moves, ways(40))
