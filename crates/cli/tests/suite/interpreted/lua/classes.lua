local Animal = {}
Animal.__index = Animal
function Animal.new(name, sound)
  local self = setmetatable({}, Animal)
  self.name = name
  self.sound = sound
  return self
end
function Animal:speak(times)
  local said = {}
  for i = 1, times or 1 do
    said[i] = self.sound
  end
  return self.name .. ": " .. table.concat(said, " ")
end
local Dog = setmetatable({}, { __index = Animal })
Dog.__index = Dog
function Dog.new(name)
  local self = Animal.new(name, "wuff")
  self.tricks = {}
  return setmetatable(self, Dog)
end
function Dog:learn(trick)
  self.tricks[#self.tricks + 1] = trick
  return self
end
function Dog:speak(times)
  if #self.tricks > 1 then
    return Animal.speak(self, times) .. "!"
  end
  return Animal.speak(self, times)
end
local all = {
  Animal.new("cat", "miau"),
  Dog.new("rex"):learn("sit"):learn("roll"),
  Dog.new("bo"):learn("sit"),
}
for i, it in ipairs(all) do
  print(it:speak(i))
end
local Stack = {
  push = function(self, v)
    self[#self + 1] = v
  end,
  pop = function(self)
    return table.remove(self)
  end,
}
Stack.__index = Stack
local s = setmetatable({}, Stack)
for i = 1, 10 do
  s:push(i)
  if i % 4 == 0 then
    s:pop()
  end
end
print(#s)
