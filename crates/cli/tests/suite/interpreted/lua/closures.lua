local function counter(from)
  local n = from
  return function()
    n = n + 1
    return n
  end, function(to)
    n = to
  end
end
local next1, set1 = counter(10)
local next2 = counter(0)
for i = 1, 5 do
  next1()
  if i == 3 then
    set1(100)
  end
  next2()
end
local made = {}
for i = 1, 4 do
  made[i] = function(x)
    return x * i
  end
end
local sum = 0
for _, f in ipairs(made) do
  sum = sum + f(sum + 1)
end
local function compose(...)
  local fs = { ... }
  return function(x)
    for i = #fs, 1, -1 do
      x = fs[i](x)
    end
    return x
  end
end
local both = compose(made[2], made[3], function(x)
  return x + 1
end)
print(next1(), next2(), sum, both(4))
