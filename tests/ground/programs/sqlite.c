/* SQL with joins, indexes, triggers, text and transactions: ARGUMENT hundred rows. */
#include "sqlite3.h"
#include "text.h"

static sqlite3 *db;

static void sql(const char *statement) {
    char *problem = NULL;
    if (sqlite3_exec(db, statement, NULL, NULL, &problem) != SQLITE_OK) {
        fprintf(stderr, "%s: %s\n", statement, problem);
        exit(1);
    }
}

static long long number(const char *query) {
    sqlite3_stmt *statement;
    must(sqlite3_prepare_v2(db, query, -1, &statement, NULL) == SQLITE_OK, query);
    must(sqlite3_step(statement) == SQLITE_ROW, query);
    long long answer = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    printf("%lld <- %s\n", answer, query);
    return answer;
}

static void fill(int rows) {
    static const char *towns[] = {"Ghent", "Oslo", "Porto", "Turin", "Vaasa", "Wells"};
    sqlite3_stmt *person, *order;
    sqlite3_prepare_v2(db, "INSERT INTO person(id, name, town) VALUES (?, ?, ?)", -1, &person, NULL);
    sqlite3_prepare_v2(db, "INSERT INTO orders(person, cents, note) VALUES (?, ?, ?)", -1, &order, NULL);
    sql("BEGIN");
    for (int row = 1; row <= rows; row++) {
        char name[40], note[40];
        snprintf(name, sizeof name, "name %u", text_random(5000));
        sqlite3_bind_int(person, 1, row);
        sqlite3_bind_text(person, 2, name, -1, SQLITE_TRANSIENT);
        sqlite3_bind_text(person, 3, towns[text_random(6)], -1, SQLITE_STATIC);
        must(sqlite3_step(person) == SQLITE_DONE, "no person");
        sqlite3_reset(person);
        for (unsigned some = text_random(6); some > 0; some--) {
            snprintf(note, sizeof note, "note %u about %s", text_random(100), name);
            sqlite3_bind_int(order, 1, row);
            sqlite3_bind_int(order, 2, (int)text_random(10000));
            sqlite3_bind_text(order, 3, note, -1, SQLITE_TRANSIENT);
            must(sqlite3_step(order) == SQLITE_DONE, "no order");
            sqlite3_reset(order);
        }
    }
    sql("COMMIT");
    sqlite3_finalize(person);
    sqlite3_finalize(order);
}

int main(int argc, char **argv) {
    int rows = 100 * atoi(argc > 1 ? argv[1] : "2");
    must(sqlite3_open(":memory:", &db) == SQLITE_OK, "does not open");
    /* Names of temporary things are random numbers, some shorter than others. */
    sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, 42, (sqlite3 *)0);
    sql("CREATE TABLE person(id INTEGER PRIMARY KEY, name TEXT, town TEXT);"
        "CREATE TABLE orders(id INTEGER PRIMARY KEY, person INTEGER REFERENCES person,"
        " cents INTEGER CHECK (cents >= 0), note TEXT);"
        "CREATE TABLE total(person INTEGER PRIMARY KEY, cents INTEGER DEFAULT 0);"
        "CREATE TRIGGER adds AFTER INSERT ON orders BEGIN"
        " INSERT INTO total VALUES (new.person, new.cents)"
        " ON CONFLICT(person) DO UPDATE SET cents = cents + new.cents; END;"
        "CREATE TRIGGER takes AFTER DELETE ON orders BEGIN"
        " UPDATE total SET cents = cents - old.cents WHERE person = old.person; END;");
    fill(rows);
    sql("CREATE INDEX by_town ON person(town, name); CREATE INDEX by_person ON orders(person)");
    sql("ANALYZE");
    must(number("SELECT sum(cents) FROM orders") == number("SELECT sum(cents) FROM total"),
         "the triggers are wrong");
    number("SELECT count(*) FROM person p JOIN orders o ON o.person = p.id"
           " WHERE p.town IN ('Oslo', 'Wells') AND o.cents > 5000");
    number("SELECT count(*) FROM (SELECT town, avg(cents) a FROM person p"
           " LEFT JOIN orders o ON o.person = p.id GROUP BY town, name HAVING a > 2000 ORDER BY a DESC)");
    number("SELECT count(*) FROM orders WHERE note LIKE '%7% about name 1%'");
    number("SELECT max(r) FROM (SELECT rank() OVER (PARTITION BY town ORDER BY name) r FROM person)");
    number("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)"
           " SELECT sum(i * i % 7) FROM n");
    number("SELECT length(group_concat(upper(substr(name, 3)), '/')) FROM person WHERE id % 3 = 0");
    number("SELECT sum(json_extract('{\"a\": [1, ' || id || ']}', '$.a[1]')) FROM person");
    must(sqlite3_exec(db, "INSERT INTO orders(person, cents) VALUES (1, -5)", 0, 0, 0) == SQLITE_CONSTRAINT,
         "the check does not");
    sql("BEGIN; DELETE FROM orders WHERE cents < 3000; ROLLBACK");
    sql("UPDATE person SET name = name || '!' WHERE town = 'Ghent'");
    sql("DELETE FROM orders WHERE id % 5 = 0");
    must(number("SELECT sum(cents) FROM orders") == number("SELECT sum(cents) FROM total"),
         "the triggers are wrong after deleting");
    sql("VACUUM");
    sqlite3_stmt *check;
    sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &check, NULL);
    must(sqlite3_step(check) == SQLITE_ROW, "no answer");
    must(!strcmp((const char *)sqlite3_column_text(check, 0), "ok"), "the database is damaged");
    sqlite3_finalize(check);
    must(sqlite3_close(db) == SQLITE_OK, "does not close");
    return 0;
}
