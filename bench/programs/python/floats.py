"""Arithmetic on numbers in lists."""
import sys


def step(place, speed, mass):
    for i in range(5):
        for j in range(i + 1, 5):
            gap = place[i] - place[j]
            pull = 0.01 / (gap * gap + 0.1) ** 1.5
            speed[i] -= gap * mass[j] * pull
            speed[j] += gap * mass[i] * pull
    for i in range(5):
        place[i] += 0.01 * speed[i]


place = [0.0, 4.8, 8.3, 12.8, 15.3]
speed = [0.0, 0.6, -1.0, 1.0, 0.9]
mass = [39.4, 0.03, 0.01, 0.001, 0.002]
for _ in range(int(sys.argv[1]) * 1000):
    step(place, speed, mass)
print(place)
