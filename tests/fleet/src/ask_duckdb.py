"""Answers the questions on standard input, a JSON object, with DuckDB."""

import json
import sys
import time

import duckdb

asked = json.load(sys.stdin)
db = duckdb.connect()
# It would be among the answers.
db.execute("SET enable_progress_bar = false")
db.execute(asked["view"])
answers = []
for question in asked["questions"]:
    begin = time.monotonic()
    answer = db.execute(question)
    names = [column[0] for column in answer.description]
    rows = [dict(zip(names, row)) for row in answer.fetchall()]
    answers.append({"rows": rows, "seconds": time.monotonic() - begin})
json.dump(answers, sys.stdout)
