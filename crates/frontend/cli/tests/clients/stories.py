"""Stories of several sessions (`stories.txt`) at a server that the environment names, step by step: what each statement returns, which error it gets, for whom it
waits and when it goes on. `stories.out` is what it prints at PostgreSQL 15."""

import queue
import sys
import threading
import time
from pathlib import Path

import psycopg

SETUP = [
    "drop table if exists entry, account",
    "create table account (id int primary key, owner text, balance int)",
    "create index on account (owner)",
    "insert into account values (1, 'ann', 100), (2, 'ann', 100), (3, 'bob', 100), (4, 'bob', 100)",
]


class Session:
    """One that runs statements in a thread of its own."""

    def __init__(self, name):
        self.name = name
        self.conn = psycopg.connect(autocommit=True)
        self.conn.execute("set deadlock_timeout = '1h'")
        self.pid = self.conn.info.backend_pid
        self.work = queue.SimpleQueue()
        self.statement = None
        self.done = threading.Event()
        self.result = None
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            statement = self.work.get()
            try:
                cursor = self.conn.execute(statement)
                rows = cursor.fetchall() if cursor.description else None
                self.result = cursor.statusmessage if rows is None else f"{cursor.statusmessage} {rows}"
            except psycopg.Error as error:
                self.result = f"{error.sqlstate} {error.diag.message_primary}"
            self.done.set()

    def start(self, statement):
        self.statement = statement
        self.done.clear()
        self.work.put(statement)


class Stage:
    def __init__(self):
        self.sessions = {name: Session(name) for name in ("1", "2", "3")}
        self.names = {session.pid: name for name, session in self.sessions.items()}
        self.watch = psycopg.connect(autocommit=True)
        self.waiting = {}
        self.snapshot = "no snapshot"

    def blockers(self, session):
        """Names of those that a session waits for."""
        row = self.watch.execute("select pg_blocking_pids(%s)", (session.pid,)).fetchone()
        # PostgreSQL names one of those that share a lock.
        return sorted({self.names.get(pid, "?") for pid in row[0]})[:1]

    def settle(self, session):
        """Until a statement is done, or waits: for whom."""
        while not session.done.is_set():
            if blockers := self.blockers(session):
                # It may have been done meanwhile.
                if not session.done.is_set() and blockers == self.blockers(session):
                    return blockers
            time.sleep(0.001)
        return None

    def look(self):
        """Tells who goes on; one who does may let another go on."""
        again = True
        while again:
            again = False
            for name in sorted(self.waiting):
                session = self.sessions[name]
                blockers = self.settle(session)
                if blockers is None:
                    del self.waiting[name]
                    print(f"    {name} goes on: {session.result}", flush=True)
                    again = True
                elif blockers != self.waiting[name]:
                    self.waiting[name] = blockers
                    print(f"    {name} waits for {', '.join(blockers)}", flush=True)

    def step(self, name, statement, to_its_end):
        session = self.sessions[name]
        assert name not in self.waiting, f"{name} waits and cannot run {statement}"
        if to_its_end:
            # Whoever closes the circle finds it, and nobody before.
            session.conn.execute("set deadlock_timeout = '10ms'")
        session.start(statement.replace("{snapshot}", self.snapshot))
        if to_its_end:
            session.done.wait()
        blockers = self.settle(session)
        if blockers is None:
            if statement == "select pg_export_snapshot()":
                self.snapshot = session.result.split("'")[1]
            result = session.result.replace(self.snapshot, "{snapshot}")
            print(f"  {name}: {statement} -> {result}", flush=True)
        else:
            self.waiting[name] = blockers
            print(f"  {name}: {statement} -> waits for {', '.join(blockers)}", flush=True)
        self.look()

    def end(self):
        for session in self.sessions.values():
            session.done.wait() if session.statement else None
            session.conn.rollback()


def stories():
    title, steps = None, []
    for line in (Path(__file__).parent / "stories.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            if title:
                yield title, steps
            title, steps = line[3:], []
        elif title and line:
            steps.append(line.split(": ", 1))
    yield title, steps


def main():
    sys.stdout.reconfigure(encoding="utf-8")
    for title, steps in stories():
        for level in ("read committed", "repeatable read"):
            if " @ " in title and not title.endswith(level):
                continue
            print(f"{title} ({level})", flush=True)
            stage = Stage()
            for statement in SETUP:
                stage.watch.execute(statement)
            for who, statement in steps:
                stage.step(who[0], statement.replace("{level}", level), who.endswith("!"))
            stage.end()
            for session in stage.sessions.values():
                session.conn.close()
            stage.watch.close()


main()
