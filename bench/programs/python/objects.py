"""Objects, attributes and methods."""
import sys


class Account:
    def __init__(self, name):
        self.name = name
        self.balance = 0
        self.history = []

    def add(self, amount):
        self.balance += amount
        if len(self.history) < 10:
            self.history.append(amount)

    @property
    def is_positive(self):
        return self.balance > 0


class Bank:
    def __init__(self, size):
        self.accounts = [Account(str(it)) for it in range(size)]

    def move(self, giver, taker, amount):
        self.accounts[giver].add(-amount)
        self.accounts[taker].add(amount)


bank = Bank(100)
for turn in range(int(sys.argv[1]) * 4000):
    bank.move(turn % 100, turn * 7 % 100, turn % 13)
print(sum(it.is_positive for it in bank.accounts))
