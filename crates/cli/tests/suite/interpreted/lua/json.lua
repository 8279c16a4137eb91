local parse
local function skip(s, at)
  return s:find("%S", at) or #s + 1
end
local function fail(s, at, what)
  error(("%s at %d"):format(what, at), 0)
end
local function string_at(s, at)
  local parts = {}
  at = at + 1
  while true do
    local c = s:sub(at, at)
    if c == "" then
      fail(s, at, "no end")
    elseif c == '"' then
      return table.concat(parts), at + 1
    elseif c == "\\" then
      parts[#parts + 1] = s:sub(at + 1, at + 1)
      at = at + 2
    else
      parts[#parts + 1] = c
      at = at + 1
    end
  end
end
local function list_at(s, at)
  local list = {}
  at = skip(s, at + 1)
  if s:sub(at, at) == "]" then
    return list, at + 1
  end
  while true do
    list[#list + 1], at = parse(s, at)
    at = skip(s, at)
    local c = s:sub(at, at)
    if c == "]" then
      return list, at + 1
    elseif c ~= "," then
      fail(s, at, "no comma")
    end
    at = at + 1
  end
end
local function object_at(s, at)
  local object = {}
  at = skip(s, at + 1)
  if s:sub(at, at) == "}" then
    return object, at + 1
  end
  while true do
    local key
    at = skip(s, at)
    key, at = string_at(s, at)
    at = skip(s, at)
    if s:sub(at, at) ~= ":" then
      fail(s, at, "no colon")
    end
    object[key], at = parse(s, at + 1)
    at = skip(s, at)
    local c = s:sub(at, at)
    if c == "}" then
      return object, at + 1
    elseif c ~= "," then
      fail(s, at, "no comma")
    end
    at = at + 1
  end
end
local words = { ["true"] = true, ["false"] = false, null = 0 }
function parse(s, at)
  at = skip(s, at)
  local c = s:sub(at, at)
  if c == "{" then
    return object_at(s, at)
  elseif c == "[" then
    return list_at(s, at)
  elseif c == '"' then
    return string_at(s, at)
  end
  local word = s:match("^%a+", at)
  if word and words[word] ~= nil then
    return words[word], at + #word
  end
  local number = s:match("^-?%d+%.?%d*", at)
  if not number then
    fail(s, at, "no value")
  end
  return tonumber(number), at + #number
end
local value = parse('{"a": [1, 2.5, -3], "b": {"c": "x\\"y"}, "d": [], "e": {}, "f": true}', 1)
print(#value.a, value.b.c, value.f)
for _, bad in ipairs({ "[1 2]", '{"a" 1}', "?", '"' }) do
  print(pcall(parse, bad, 1))
end
