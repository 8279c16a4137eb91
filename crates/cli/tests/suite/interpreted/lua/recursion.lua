local function tail(n, sum)
  if n == 0 then
    return sum
  end
  return tail(n - 1, sum + n)
end
local function depth(n)
  if n == 0 then
    return 0
  end
  return 1 + depth(n - 1)
end
local function ackermann(m, n)
  if m == 0 then
    return n + 1
  elseif n == 0 then
    return ackermann(m - 1, 1)
  end
  return ackermann(m - 1, ackermann(m, n - 1))
end
local odd
local function even(n)
  if n == 0 then
    return true
  end
  return odd(n - 1)
end
function odd(n)
  if n == 0 then
    return false
  end
  return even(n - 1)
end
local function failing(n)
  if n == 5000 then
    error("deep")
  end
  return 1 + failing(n + 1)
end
print(tail(20000, 0), depth(15000), ackermann(2, 3), even(101))
local ok, why = pcall(failing, 1)
print(ok, why:match("deep"))
local function flatten(t, into)
  for _, v in ipairs(t) do
    if type(v) == "table" then
      flatten(v, into)
    else
      into[#into + 1] = v
    end
  end
  return into
end
print(#flatten({ 1, { 2, { 3, {} }, 4 }, { { { 5 } } } }, {}))
