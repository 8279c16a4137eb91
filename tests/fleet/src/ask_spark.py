"""Answers the questions on standard input, a JSON object, with Spark, on this machine alone."""

import json
import sys
import time

from pyspark.sql import SparkSession

asked = json.load(sys.stdin)
settings = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "4g",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "8",
    "spark.log.level": "ERROR",
}
builder = SparkSession.builder.master("local[*]").appName("headcount")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
spark.sql(asked["view"].rstrip().rstrip(";"))
answers = []
for question in asked["questions"]:
    begin = time.monotonic()
    rows = spark.sql(question.rstrip().rstrip(";")).collect()
    rows = [row.asDict() for row in rows]
    answers.append({"rows": rows, "seconds": time.monotonic() - begin})
spark.stop()
json.dump(answers, sys.stdout)
