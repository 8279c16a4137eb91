local n = tonumber((...))
local Account = {}
Account.__index = Account
function Account.new(balance)
  return setmetatable({ balance = balance, log = {} }, Account)
end
function Account:deposit(amount)
  self.balance = self.balance + amount
  self.log[#self.log + 1] = amount
end
function Account:total()
  local sum = 0
  for _, amount in ipairs(self.log) do
    sum = sum + amount
  end
  return sum
end
local sum = 0
for _ = 1, n do
  local account = Account.new(0)
  for i = 1, 1000 do
    account:deposit(i)
  end
  sum = sum + account:total()
end
print(sum)
