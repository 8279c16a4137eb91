-- A bit of everything that makes an interpreter work: ARGUMENT rounds.
local rounds = tonumber((...)) or 1

local seed = 42
local function random(below)
  seed = (seed * 1103515245 + 12345) % 2147483648
  return seed % below + 1
end

local function sorting()
  local numbers, names = {}, {}
  for i = 1, 2000 do numbers[i] = random(100000) end
  table.sort(numbers)
  for i = 2, #numbers do assert(numbers[i - 1] <= numbers[i]) end
  for i = 1, 300 do names[i] = string.format("%05d-%s", random(99999), ("x"):rep(i % 7)) end
  table.sort(names, function(a, b) return a > b end)
  return numbers[1000] + #names[1]
end

local function strings()
  local parts = {}
  for i = 1, 400 do parts[#parts + 1] = ("%d:%x"):format(i, i * 17):upper() end
  local text = table.concat(parts, ";")
  local found = 0
  for number, hex in text:gmatch("(%d+):(%x+)") do
    if tonumber(hex, 16) == tonumber(number) * 17 then found = found + 1 end
  end
  local swapped, changes = text:gsub("%d(%d)", "<%1>")
  return found + changes + #swapped:reverse() + (text:find("200:", 1, true) or 0)
end

local function closures()
  local function counter()
    local n = 0
    return function(step) n = n + (step or 1); return n end
  end
  local first, second = counter(), counter()
  for i = 1, 3000 do first(); second(i % 3) end
  local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
  return first() + second() + fib(17)
end

local function coroutines()
  local function numbers(limit)
    return coroutine.wrap(function()
      for i = 1, limit do coroutine.yield(i) end
    end)
  end
  local sum = 0
  for n in numbers(1500) do sum = sum + n end
  local left = coroutine.create(function() coroutine.yield(1); error("never reached") end)
  coroutine.resume(left) -- stays suspended for ever
  return sum
end

local function errors()
  local caught = 0
  local function deep(n)
    if n == 0 then error({ code = 7 }) end
    return deep(n - 1) + 1
  end
  for i = 1, 200 do
    local fine, problem = pcall(deep, i % 20)
    if not fine and problem.code == 7 then caught = caught + 1 end
    local ok, message = pcall(function() return nil + i end)
    if not ok and message:find("arithmetic") then caught = caught + 1 end
  end
  select(2, xpcall(function() local t; return t.x end, debug.traceback))
  return caught
end

local function objects()
  local Shape = {}
  Shape.__index = Shape
  Shape.__add = function(a, b) return setmetatable({ size = a.size + b.size }, Shape) end
  Shape.__lt = function(a, b) return a.size < b.size end
  function Shape:area() return self.size * self.size end
  local all = setmetatable({ size = 0 }, Shape)
  for i = 1, 1000 do
    local one = setmetatable({ size = i % 9 }, Shape)
    if one < all then all = all + one else all = one + all end
  end
  return all:area()
end

local total = 0
for _ = 1, rounds do
  total = total + sorting() + strings() + closures() + coroutines() + errors() + objects()
  collectgarbage("step")
end
print(("%d rounds: %d"):format(rounds, total))
