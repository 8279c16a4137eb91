local log = {}
local function resource(name)
  log[#log + 1] = "open " .. name
  return setmetatable({}, {
    __close = function(_, err)
      log[#log + 1] = "close " .. name
      if err then
        log[#log + 1] = "after an error"
      end
    end,
  })
end
local function use(n)
  local a <close> = resource("a" .. n)
  local b <close> = resource("b" .. n)
  if n == 2 then
    error("two")
  end
  for i = 1, n do
    local c <close> = resource("c")
    if i == 2 then
      return i
    end
  end
  return n
end
for i = 1, 4 do
  print(pcall(use, i))
end
local limit <const> = 3
local count = 0
do
  local d <close> = resource("d")
  while count < limit do
    count = count + 1
  end
end
print(#log, count)
