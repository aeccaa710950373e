"""psycopg 3 at a server that the environment names (PGHOST ...); prints what it sees. `driver.out` is what it prints at PostgreSQL 15."""

import enum
import sys
import threading
import time
import uuid
from datetime import date, datetime, time as clock, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import psycopg
from psycopg import sql
from psycopg.types.enum import EnumInfo, register_enum
from psycopg.types.json import Json, Jsonb

HERE = Path(__file__).parent


def say(*words):
    print(*words, flush=True)


def values():
    for line in (HERE / "types.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            yield line.split("\t", 1)


def fields(error):
    """What an error says but for hints, places in the text, and lines of the server's source."""
    d = error.diag
    named = {
        "message": d.message_primary,
        "detail": d.message_detail,
        "schema": d.schema_name,
        "table": d.table_name,
        "column": d.column_name,
        "type": d.datatype_name,
        "constraint": d.constraint_name,
    }
    told = " | ".join(f"{k}: {v}" for k, v in named.items() if v is not None)
    return f"{d.severity} {error.sqlstate} {type(error).__name__} | {told}"


def connecting():
    say("# connecting")
    with psycopg.connect(application_name="a client") as conn:
        info = conn.info
        say(info.status.name, info.transaction_status.name, info.server_version // 10000)
        for name in (
            "server_encoding", "client_encoding", "application_name", "is_superuser", "DateStyle",
            "IntervalStyle", "integer_datetimes", "standard_conforming_strings",
            "in_hot_standby", "default_transaction_read_only",
        ):
            say(name, info.parameter_status(name))
        say(conn.execute("select current_user, current_database(), current_setting('application_name')").fetchone())
    say(conn.closed)


def types(conn):
    say("# types: read in text and in binary, sent back in each, kept in a table")
    for name, text in values():
        kind = sql.SQL(name)
        for binary in (False, True):
            cursor = conn.cursor(binary=binary)
            cursor.execute(sql.SQL("select {}::{}").format(sql.Literal(text), kind))
            column = cursor.description[0]
            value = cursor.fetchone()[0]
            say(name, repr(text), "binary" if binary else "text", column.type_code, column.internal_size, repr(value))
            if isinstance(value, (dict, list)) and name.startswith("json"):
                value = Jsonb(value) if name == "jsonb" else Json(value)
            if value == []:
                continue
            mark = sql.SQL("%b" if binary else "%t")
            again = conn.cursor(binary=binary)
            again.execute(sql.SQL("select {}::{}, pg_typeof({}::{})").format(mark, kind, mark, kind), (value, value))
            say(" ", again.fetchone())
    names = list(dict.fromkeys(name for name, _ in values()))
    columns = sql.SQL(", ").join(sql.SQL(f"c{i} {name}") for i, name in enumerate(names))
    conn.execute(sql.SQL("create table every_type (id serial primary key, {})").format(columns))
    for name, text in values():
        column = sql.Identifier(f"c{names.index(name)}")
        insert = sql.SQL("insert into every_type ({}) values ({}) returning id, {}").format(column, sql.Literal(text), column)
        say(conn.execute(insert).fetchone())
    say(conn.execute("insert into every_type default values returning *").fetchone())
    for binary in (False, True):
        for row in conn.cursor(binary=binary).execute("select * from every_type order by id"):
            say([value for value in row if value is not None])


def parameters(conn):
    say("# parameters of every Python type, their types inferred and given")
    sent = [
        True, 1, 40000, 3_000_000_000, 10**30, 1.5, Decimal("1.50"), "text", b"\x00\xff", date(2024, 2, 29),
        clock(1, 2, 3, 4), datetime(2024, 2, 29, 1, 2, 3), datetime(2024, 2, 29, 1, 2, 3, tzinfo=timezone.utc),
        timedelta(days=1, seconds=3), uuid.UUID(int=7), Json({"a": 1}), Jsonb({"a": 1}), [1, 2], ["a", None], None,
    ]
    for value in sent:
        for mark in ("%t", "%b"):
            say(mark, conn.execute(f"select {mark} as v", (value,)).fetchone())
    say(conn.execute("select %s + 1, %s || 'x', %s::text, %s = any(%s)", (1, "a", 5, 2, [1, 2])).fetchone())
    say(conn.execute("select count(*) from every_type where id = any(%s)", ([1, 2, 3, 999],)).fetchone())


def prepared(conn):
    say("# prepared statements")
    conn.execute("create table item (id int primary key, name text, price numeric(10,2) check (price >= 0))")
    conn.prepare_threshold = 2
    for i in range(8):
        conn.execute("insert into item values (%s, %s, %s)", (i, f"item {i}", Decimal(i) / 4))
    for i in range(8):
        say(conn.execute("select * from item where id = %s", (i,), prepare=True).fetchone())
    say(conn.execute("select count(*) from pg_prepared_statements").fetchone()[0] > 0)
    # A prepared statement after the table has changed under it.
    query = "select * from item where id = %s"
    try:
        conn.execute("alter table item add column more int default 7")
        with conn.transaction():
            say(conn.execute(query, (1,), prepare=True).fetchone())
    except psycopg.Error as error:
        say(fields(error))
    conn.execute("deallocate all")
    say(conn.execute(query, (1,)).fetchone())


def batches(conn):
    say("# batches and pipelines")
    cursor = conn.cursor()
    cursor.executemany("insert into item (id, name) values (%s, %s)", [(i, f"many {i}") for i in range(100, 200)])
    say(cursor.rowcount)
    cursor.executemany("insert into item (id) values (%s) returning id, more", [(i,) for i in range(200, 204)], returning=True)
    while True:
        say(cursor.fetchall())
        if not cursor.nextset():
            break
    with conn.pipeline() as pipeline:
        cursors = [conn.execute("select %s::int * 2", (i,)) for i in range(5)]
        pipeline.sync()
        say([cursor.fetchone()[0] for cursor in cursors])
    try:
        with conn.pipeline() as pipeline:
            for id in (300, 300, 301):
                conn.execute("insert into item (id) values (%s)", (id,))
            pipeline.sync()
    except psycopg.Error as error:
        say(fields(error))
    say(conn.execute("select count(*) from item where id >= 300").fetchone())
    say(conn.execute("select 1; select 2; select 3").fetchall())
    many = list(range(30000))
    marks = ",".join(["%s"] * len(many))
    say(conn.execute(f"select count(*) from item where id in ({marks})", many).fetchone())


def copies(conn):
    say("# COPY")
    conn.execute("create table copied (id int, t text, n numeric, at timestamptz, b bytea)")
    cursor = conn.cursor()
    rows = [(1, "a\tb\\\n", Decimal("1.5"), datetime(2024, 1, 1, tzinfo=timezone.utc), b"\x00"), (2, None, None, None, None)]
    with cursor.copy("copy copied from stdin") as copy:
        for row in rows:
            copy.write_row(row)
    say(cursor.statusmessage)
    with cursor.copy("copy copied from stdin (format binary)") as copy:
        copy.set_types(["int4", "text", "numeric", "timestamptz", "bytea"])
        for row in rows:
            copy.write_row(row)
    say(cursor.statusmessage)
    with cursor.copy("copy copied (t, id) from stdin (format csv, header, null 'NIL')") as copy:
        copy.write('t,id\n"a ""quoted"", one",3\nNIL,4\n')
    say(cursor.statusmessage)
    for how in ("", "(format csv, header)", "(format binary)"):
        with cursor.copy(f"copy (select * from copied order by id, n) to stdout {how}") as copy:
            say(b"".join(bytes(part) for part in copy))
    with cursor.copy("copy copied to stdout (format binary)") as copy:
        copy.set_types(["int4", "text", "numeric", "timestamptz", "bytea"])
        for row in copy.rows():
            say(row)
    for text in ('x\t"\t1\t\\N\t\\N\n', '1\t"\t1\tnever\t\\N\n'):
        try:
            with cursor.copy("copy copied from stdin") as copy:
                copy.write(text)
        except psycopg.Error as error:
            say(fields(error))
    try:
        with cursor.copy("copy copied from stdin") as copy:
            copy.write("5\tx\t1\t\\N\t\\N\n")
            raise ValueError("the client thinks better of it")
    except ValueError as error:
        say(error)
    say(conn.execute("select count(*) from copied").fetchone())


ERRORS = """select 1/0
selec 1
select nope
select * from nope
select nope(1)
select 'x'::int
select 2147483647 + 1
select sqrt(-1)
select '2024-13-01'::date
select 'abc'::uuid
select '{'::json
select 1 + 'a'
select true + 1
select (select 1 union all select 2)
insert into item (id) values (1)
insert into item (id) values (null)
insert into item (id, price) values (900, -1)
insert into item (id, price) values (901, 1e20)
insert into item values (1, 2, 3, 4, 5, 6)
insert into item (nope) values (1)
update item set nope = 1
select id from item group by name
select * from item limit -1
create table item (id int)
drop table nope
create index on nope (id)
alter table item drop column nope
select cast('abcdef' as varchar(3)) = 'abc' from nope
select substring('a' from 1 for -1)
select repeat('a', 10) || 5 || null, 'x' = 5
select 1 where 'text'
set nope = 1
rollback to nope
release savepoint nope
fetch 1 from nope
execute nope
create table other (id int references nope)
create table other (id int references item (name))
create table other (id nope)
select pg_typeof(1) from item where id = 1 for nope
select to_char(now())
select 'a' like 'b' escape 'cd'
select round(1.5, 2, 3)
select * from item i join item i on true
select item.nope from item
select x.* from item
select 1 from item order by 2
select interval '1 fortnight'
truncate nope
create schema public
grant select on nope to public
grant select on item to nobody
create role vellum
begin isolation level nope"""


def errors(conn):
    say("# errors")
    for statement in ERRORS.splitlines():
        try:
            with conn.transaction():
                got = conn.execute(statement.encode()).fetchall()
            say(statement, "->", got)
        except psycopg.Error as error:
            say(statement, "->", fields(error))
    conn.execute("create table part (id int primary key, item int constraint of_item references item)")
    for statement in (
        "insert into part values (1, 12345)",
        "insert into part values (1, 1)",
        "delete from item where id = 1",
        "drop table item",
        "truncate item",
    ):
        try:
            with conn.transaction():
                say(statement, "->", conn.execute(statement).statusmessage)
        except psycopg.Error as error:
            say(statement, "->", fields(error))
    # Notices come while the statement runs.
    conn.add_notice_handler(lambda notice: say(notice.severity, notice.message_primary))
    conn.execute("drop table if exists nope")
    conn.execute("create table if not exists item (id int)")


def transactions(conn):
    say("# transactions")
    status = lambda: conn.info.transaction_status.name
    conn.autocommit = False
    count = "select count(*) from item where id > 1000"
    conn.execute("insert into item (id) values (1001)")
    say(status())
    conn.rollback()
    say(status(), conn.execute(count).fetchone())
    with conn.transaction():
        conn.execute("insert into item (id) values (1002)")
        try:
            with conn.transaction():
                conn.execute("insert into item (id) values (1003)")
                conn.execute("select 1/0")
        except psycopg.Error as error:
            say(error.sqlstate, status())
        with conn.transaction():
            conn.execute("insert into item (id) values (1004)")
    say(conn.execute("select id from item where id > 1000 order by id").fetchall())
    conn.commit()
    try:
        conn.execute("select 1/0")
    except psycopg.Error as error:
        say(error.sqlstate, status())
    try:
        conn.execute("select 1")
    except psycopg.Error as error:
        say(fields(error))
    conn.commit()
    say(status())
    conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    conn.read_only = True
    say(conn.execute("select current_setting('transaction_isolation'), current_setting('transaction_read_only')").fetchone())
    try:
        conn.execute("delete from item")
    except psycopg.Error as error:
        say(fields(error))
    conn.rollback()
    conn.read_only = None
    say(conn.execute(count).fetchone())
    with psycopg.connect(autocommit=True) as other:
        other.execute("update item set name = 'theirs' where id = 1002")
        say(conn.execute("select name from item where id = 1002").fetchone())
        try:
            conn.execute("update item set name = 'mine' where id = 1002")
        except psycopg.Error as error:
            say(fields(error))
    conn.rollback()
    conn.isolation_level = None
    conn.autocommit = True


def cursors(conn):
    say("# cursors of the server")
    with conn.transaction():
        for binary in (False, True):
            with conn.cursor("a_cursor", binary=binary, scrollable=True) as cursor:
                cursor.execute("select id, name from item where id between 100 and 110 order by id")
                say(cursor.fetchone(), cursor.fetchmany(2))
                cursor.scroll(-2)
                say(cursor.fetchone())
                cursor.scroll(8, mode="absolute")
                say(cursor.fetchall())
    held = conn.cursor("held", withhold=True)
    held.execute("select id from item where id < 3 order by id")
    say(held.fetchall())
    held.close()
    with conn.transaction():
        cursor = conn.cursor("many")
        cursor.itersize = 7
        say(sum(row[0] for row in cursor.execute("select id from item")))


def until_busy(conn, pid):
    """Until a session runs a statement that sleeps or waits."""
    while True:
        row = conn.execute("select state from pg_stat_activity where pid = %s", (pid,)).fetchone()
        if row and row[0] == "active":
            return
        time.sleep(0.01)


def cancelling(conn):
    say("# cancelling")
    # One that looks on is in no transaction, where it would see the same activity each time.
    with psycopg.connect(autocommit=True) as other, psycopg.connect(autocommit=True) as watch:
        def run(statement, cancel):
            done = []

            def work():
                try:
                    done.append(other.execute(statement).fetchall())
                except psycopg.Error as error:
                    done.append(fields(error))

            thread = threading.Thread(target=work)
            thread.start()
            until_busy(watch, other.info.backend_pid)
            cancel()
            thread.join()
            say(statement, "->", done[0])

        pid = other.info.backend_pid
        run("select pg_sleep(600)", other.cancel)
        run("select pg_sleep(600)", other.cancel_safe)
        run("select pg_sleep(600)", lambda: say(conn.execute("select pg_cancel_backend(%s)", (pid,)).fetchone()))
        run("select count(*) from every_type a, every_type b, every_type c, every_type d, every_type e", other.cancel)
        with conn.transaction():
            conn.execute("select * from item where id = 1 for update")
            run("update item set name = 'x' where id = 1", other.cancel)
        say(other.execute("select 1").fetchone())
        run("select pg_sleep(600)", lambda: say(conn.execute("select pg_terminate_backend(%s)", (pid,)).fetchone()))
        say(other.closed)
    conn.execute("set statement_timeout = 20")
    try:
        conn.execute("select pg_sleep(600)")
    except psycopg.Error as error:
        say(fields(error))
    conn.execute("reset statement_timeout")


class Mood(enum.Enum):
    sad = 1
    ok = 2


def enums(conn):
    say("# enums")
    conn.execute("create type mood as enum ('sad', 'ok')")
    info = EnumInfo.fetch(conn, "mood")
    say(info.name, info.labels)
    register_enum(info, conn, Mood)
    conn.execute("create table moods (id int, mood mood, many mood[])")
    for binary in (False, True):
        with conn.cursor(binary=binary) as cursor:
            word = "%b" if binary else "%t"
            cursor.execute(f"insert into moods values (1, {word}, {word}) returning mood, many", (Mood.ok, [Mood.sad, Mood.ok]))
            say(cursor.fetchone(), cursor.description[0].type_display, cursor.description[1].type_display)
        with conn.cursor().copy(f"copy moods from stdin (format {'binary' if binary else 'text'})") as copy:
            copy.set_types(["int4", "mood", "mood[]"])
            copy.write_row((2, Mood.sad, [Mood.sad]))
        with conn.cursor(binary=binary).copy(f"copy moods to stdout (format {'binary' if binary else 'text'})") as copy:
            say(b"".join(bytes(piece) for piece in copy).replace(info.oid.to_bytes(4), b"oid!"))
    for statement in ("select 'none'::mood", "insert into moods values (1, 'none')", "drop type mood", "alter type mood add value 'ok'", "create type mood as enum ()"):
        try:
            conn.execute(statement)
        except psycopg.Error as error:
            say(fields(error))
    conn.execute("drop table moods")
    conn.execute("drop type mood")


def main():
    sys.stdout.reconfigure(encoding="utf-8")
    connecting()
    with psycopg.connect(autocommit=True) as conn:
        conn.execute("set timezone = 'UTC'")
        for part in (types, parameters, prepared, batches, copies, errors, transactions, cursors, cancelling, enums):
            part(conn)


main()
