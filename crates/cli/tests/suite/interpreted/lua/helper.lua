local name = ...
local M = { name = name or "none" }
local values = {}
function M.add(v)
  values[#values + 1] = v
  if v > 2 then
    values[#values + 1] = v
  end
end
function M.sum()
  local sum = 0
  for _, v in ipairs(values) do
    sum = sum + v
  end
  return sum
end
return M
