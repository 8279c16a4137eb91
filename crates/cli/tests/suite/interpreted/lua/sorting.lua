local seed = 7
local function random(n)
  seed = (seed * 1103515245 + 12345) % 2147483648
  return seed % n
end
local function fresh(n)
  local t = {}
  for i = 1, n do
    t[i] = random(1000)
  end
  return t
end
local function quicksort(t, low, high)
  if low >= high then
    return
  end
  local pivot = t[(low + high) // 2]
  local i, j = low, high
  while i <= j do
    while t[i] < pivot do
      i = i + 1
    end
    while t[j] > pivot do
      j = j - 1
    end
    if i <= j then
      t[i], t[j] = t[j], t[i]
      i = i + 1
      j = j - 1
    end
  end
  quicksort(t, low, j)
  quicksort(t, i, high)
end
local function bubble(t)
  local swapped
  repeat
    swapped = false
    for i = 1, #t - 1 do
      if t[i] > t[i + 1] then
        t[i], t[i + 1] = t[i + 1], t[i]
        swapped = true
      end
    end
  until not swapped
end
local a = fresh(200)
quicksort(a, 1, #a)
local b = fresh(30)
bubble(b)
local c = fresh(50)
table.sort(c, function(x, y)
  return x > y
end)
for i = 2, #a do
  assert(a[i - 1] <= a[i])
end
print(a[1], a[200], b[1], c[1])
