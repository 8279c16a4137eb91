local total = 0
for i = 1, 20 do
  for j = i, 1, -1 do
    if j % 3 == 0 then
      goto continue
    end
    if j == 17 then
      break
    end
    total = total + j
    ::continue::
  end
  local n = i
  while n > 0 do
    n = n - 3
    if n == 5 and total > 3 then
      total = total + 1
    end
  end
  repeat
    n = n + 1
    local done = n > 4
  until done
end
for i = 3, 1 do
  total = total + 1000
end
for x = 0.0, 1.0, 0.25 do
  total = total + x
end
for _, v in ipairs({}) do
  total = total + v
end
for k, v in pairs({ a = 1, b = 2, 3 }) do
  if v == 3 then
    total = total + v
  end
end
while true do
  total = total + 1
  if total > 1000 then
    break
  end
end
do
  local i = 0
  ::again::
  i = i + 1
  if i < 7 then
    goto again
  end
  total = total + i
end
print(total)
