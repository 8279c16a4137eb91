local function sieve(n)
  local is = {}
  for i = 2, n do
    is[i] = true
  end
  for i = 2, math.floor(n ^ 0.5) do
    if is[i] then
      for j = i * i, n, i do
        is[j] = false
      end
    end
  end
  local count = 0
  for i = 2, n do
    if is[i] then
      count = count + 1
    end
  end
  return count
end
local function gcd(a, b)
  while b ~= 0 do
    a, b = b, a % b
  end
  return a
end
local function bits(n)
  local count = 0
  while n ~= 0 do
    count = count + (n & 1)
    n = n >> 1
  end
  return count
end
local function multiply(a, b, n)
  local c = {}
  for i = 1, n do
    c[i] = {}
    for j = 1, n do
      local sum = 0
      for k = 1, n do
        sum = sum + a[i][k] * b[k][j]
      end
      c[i][j] = sum
    end
  end
  return c
end
local m = {}
for i = 1, 5 do
  m[i] = {}
  for j = 1, 5 do
    m[i][j] = (i ~ j) | (i << j) - ~i // 3
  end
end
local p = multiply(m, m, 5)
local function root(x)
  local guess = x / 2
  for _ = 1, 50 do
    local better = (guess + x / guess) / 2
    if math.abs(better - guess) < 1e-12 then
      break
    end
    guess = better
  end
  return guess
end
local ok = pcall(function()
  return 1 // 0
end)
print(sieve(100), gcd(1071, 462), bits(0xff0f), p[3][4] % 1000, ("%.6f"):format(root(2)), ok)
print("10" + 5, 7 // 2, 7.5 // 2, -7 % 3, 2 ^ 10, 1 < 2 and "yes" or "no")
