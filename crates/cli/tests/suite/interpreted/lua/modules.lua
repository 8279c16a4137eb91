package.path = "./?.lua;" .. package.path
local helper = require("helper")
local again = require("helper")
assert(helper == again)
for i = 1, 3 do
  helper.add(i)
end
print(helper.sum(), helper.name)
local chunk = assert(loadfile("helper.lua"))
local other = chunk("other")
other.add(5)
print(other.sum(), other.name)
print(pcall(require, "no_such_module"))
dofile("helper.lua")
