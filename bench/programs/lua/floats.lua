local n = tonumber((...))
local function step(bodies, dt)
  for i = 1, #bodies do
    local a = bodies[i]
    for j = i + 1, #bodies do
      local b = bodies[j]
      local dx, dy, dz = a.x - b.x, a.y - b.y, a.z - b.z
      local d = dx * dx + dy * dy + dz * dz + 0.01
      local f = dt / (d * d ^ 0.5)
      a.vx, a.vy, a.vz = a.vx - dx * b.m * f, a.vy - dy * b.m * f, a.vz - dz * b.m * f
      b.vx, b.vy, b.vz = b.vx + dx * a.m * f, b.vy + dy * a.m * f, b.vz + dz * a.m * f
    end
  end
  for _, it in ipairs(bodies) do
    it.x, it.y, it.z = it.x + dt * it.vx, it.y + dt * it.vy, it.z + dt * it.vz
  end
end
local bodies = {}
for i = 1, 5 do
  bodies[i] = { x = i, y = i * i % 7, z = -i, vx = 0, vy = 0.1 * i, vz = 0, m = 1 / i }
end
for _ = 1, n * 100 do
  step(bodies, 0.001)
end
print(("%.9f"):format(bodies[1].x))
