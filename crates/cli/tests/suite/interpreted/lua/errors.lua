local function raising(n)
  if n % 2 == 0 then
    error({ code = n })
  end
  local t = nil
  if n % 3 == 0 then
    return t.x
  end
  return n
end
local total = 0
for i = 1, 12 do
  local ok, err = pcall(raising, i)
  if ok then
    total = total + err
  elseif type(err) == "table" then
    total = total + err.code
  else
    total = total - 1
  end
end
local function deep(n)
  if n == 0 then
    local s = nil .. "x"
  end
  return 1 + deep(n - 1)
end
local ok, message = xpcall(deep, function(m)
  return "handled: " .. m
end, 10)
print(ok, message)
local function unprotected()
  for i = 1, 10 do
    if i == 4 then
      assert(false, "four")
    end
    total = total + 1
  end
end
print(pcall(unprotected))
print(select("#", pcall(error)))
local co = coroutine.create(function()
  total = total + 1
  error("inside")
end)
print(coroutine.resume(co))
local done, why = pcall(function()
  local ok2 = pcall(error, "inner")
  assert(not ok2)
  error("outer", 0)
end)
print(total, done, why)
