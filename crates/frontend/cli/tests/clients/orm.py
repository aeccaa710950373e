"""SQLAlchemy at a server that the environment names (PGHOST ...): creates, looks at names, queries. `orm.out` is what it prints at PostgreSQL 15."""

import datetime
import decimal
import sys
import uuid

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects import postgresql as pg


def say(*words):
    print(*words, flush=True)


class Base(orm.DeclarativeBase):
    pass


class Customer(Base):
    __tablename__ = "customer"
    __table_args__ = (
        sa.UniqueConstraint("email", name="one_customer_an_address"),
        sa.CheckConstraint("balance >= 0", name="no_debts"),
        sa.Index("customer_by_name", "name", sa.desc("since")),
    )
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(40), index=True)
    email: orm.Mapped[str | None]
    balance: orm.Mapped[decimal.Decimal] = orm.mapped_column(sa.Numeric(12, 2), server_default="0")
    since: orm.Mapped[datetime.datetime] = orm.mapped_column(sa.DateTime(timezone=True), server_default=sa.func.now())
    orders: orm.Mapped[list["Order"]] = orm.relationship(back_populates="customer", cascade="all, delete-orphan", order_by="Order.id")


class Order(Base):
    __tablename__ = "order"
    id: orm.Mapped[int] = orm.mapped_column(sa.BigInteger, sa.Identity(always=True, start=100, increment=10), primary_key=True)
    customer_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("customer.id", ondelete="CASCADE", name="of_customer"))
    day: orm.Mapped[datetime.date]
    document: orm.Mapped[dict] = orm.mapped_column(pg.JSONB, server_default="{}")
    token: orm.Mapped[uuid.UUID | None]
    paid: orm.Mapped[bool] = orm.mapped_column(server_default=sa.false())
    tags: orm.Mapped[list[str] | None] = orm.mapped_column(pg.ARRAY(sa.Text))
    customer: orm.Mapped[Customer] = orm.relationship(back_populates="orders")


def look(engine):
    say("# what is there")
    inspector = sa.inspect(engine)
    say(inspector.default_schema_name, inspector.get_schema_names())
    say(sorted(inspector.get_table_names()), sorted(inspector.get_view_names()), inspector.get_sequence_names())
    say(inspector.has_table("customer"), inspector.has_table("nope"), inspector.has_table("customer", schema="other"))


def every_type(engine):
    say("# types")
    table = sa.Table(
        "every type", sa.MetaData(schema="other"),
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("b", sa.Boolean), sa.Column("s", sa.SmallInteger), sa.Column("l", sa.BigInteger), sa.Column("r", sa.REAL),
        sa.Column("d", sa.Double), sa.Column("n", sa.Numeric), sa.Column("n2", sa.Numeric(8, 3)), sa.Column("t", sa.Text, comment=None),
        sa.Column("v", sa.String(12)), sa.Column("c", sa.CHAR(4)), sa.Column("y", sa.LargeBinary), sa.Column("day", sa.Date),
        sa.Column("clock", sa.Time), sa.Column("at", sa.DateTime), sa.Column("at_zone", sa.DateTime(timezone=True)),
        sa.Column("at3", pg.TIMESTAMP(precision=3)), sa.Column("span", sa.Interval), sa.Column("u", sa.Uuid), sa.Column("j", pg.JSON), sa.Column("jb", pg.JSONB),
        sa.Column("list", pg.ARRAY(sa.Integer), server_default="{1,2}"),
    )
    row = dict(
        id=1, b=True, s=-5, l=2**40, r=1.5, d=0.1, n=decimal.Decimal("1.50"), n2=decimal.Decimal("2.125"), t="text", v="varchar", c="ab",
        y=b"\x00\x01", day=datetime.date(2024, 2, 29), clock=datetime.time(1, 2, 3), at=datetime.datetime(2024, 2, 29, 1, 2, 3),
        at_zone=datetime.datetime(2024, 2, 29, 1, 2, 3, tzinfo=datetime.timezone.utc), at3=datetime.datetime(2024, 2, 29, 1, 2, 3, 456789),
        span=datetime.timedelta(days=1, seconds=2), u=uuid.UUID(int=5), j={"a": [1, None]}, jb={"b": 2}, list=[3, 4],
    )
    with engine.begin() as connection:
        connection.execute(sa.schema.CreateSchema("other"))
        table.create(connection)
        connection.execute(table.insert(), row)
        connection.execute(table.insert(), {"id": 2})
        for found in connection.execute(table.select().order_by(table.c.id)):
            say(tuple(found))
        say(connection.execute(sa.select(table.c.jb["b"].astext, table.c.j["a"][0].astext).where(table.c.id == 1)).one())


def create(engine):
    say("# create")
    Base.metadata.create_all(engine)
    Base.metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(sa.text("create view rich as select id, name from customer where balance > 100"))


def query(engine):
    say("# the object mapper")
    with orm.Session(engine) as session:
        people = [Customer(name=f"name {i}", email=f"{i}@example.org" if i else None, balance=decimal.Decimal(i * 50)) for i in range(5)]
        for i, person in enumerate(people):
            person.orders = [Order(day=datetime.date(2024, 1, 1 + n), document={"n": n, "of": i}, token=uuid.UUID(int=n), tags=["a", str(n)]) for n in range(i)]
        session.add_all(people)
        session.commit()
        say([(person.id, person.balance, [order.id for order in person.orders]) for person in people])
        rows = session.execute(
            sa.select(Customer.name, sa.func.count(Order.id), sa.func.max(Order.day)).join(Customer.orders, isouter=True)
            .group_by(Customer.id, Customer.name).having(sa.func.count(Order.id) != 1).order_by(Customer.name)
        )
        say([tuple(row) for row in rows])
        found = session.scalars(sa.select(Customer).options(orm.selectinload(Customer.orders)).where(Customer.name.like("name %")).order_by(Customer.id.desc()).limit(2)).all()
        say([(person.name, len(person.orders)) for person in found])
        found = session.scalars(sa.select(Customer).options(orm.joinedload(Customer.orders)).order_by(Customer.id)).unique().all()
        say([(person.name, len(person.orders)) for person in found])
        say(session.scalar(sa.select(sa.func.count()).where(sa.exists().where(Order.customer_id == Customer.id)).select_from(Customer)))
        say(session.scalars(sa.select(Order.id).where(Order.document["n"].as_integer() == 2).order_by(Order.id)).all())
        say(session.scalars(sa.select(Order.id).where(sa.literal("3") == sa.any_(Order.tags))).all())
        person = session.get(Customer, 3, with_for_update=True)
        person.balance += 1
        del person.orders[0]
        session.flush()
        session.delete(session.get(Customer, 5))
        session.commit()
        say(session.scalar(sa.select(sa.func.count(Order.id))), session.get(Customer, 3).balance)
        ranked = sa.select(Order.id, sa.func.row_number().over(partition_by=Order.customer_id, order_by=Order.day.desc()).label("rank")).cte("ranked")
        say([tuple(row) for row in session.execute(sa.select(ranked).where(ranked.c.rank == 1).order_by(ranked.c.id))])
        insert = pg.insert(Customer).values(id=1, name="again", email=None)
        insert = insert.on_conflict_do_update(index_elements=[Customer.id], set_={"name": insert.excluded.name}).returning(Customer.id, Customer.name)
        say(tuple(session.execute(insert).one()))
        say(session.execute(sa.update(Customer).where(Customer.balance > 60).values(balance=Customer.balance * 2)).rowcount)
        say(session.execute(sa.delete(Order).where(Order.customer_id == 4)).rowcount)
        session.rollback()
        try:
            session.add(Customer(name="twice", email="1@example.org"))
            session.commit()
        except sa.exc.IntegrityError as error:
            session.rollback()
            say(type(error.orig).__name__, error.orig.sqlstate)
        try:
            with session.begin_nested():
                session.add(Customer(name="in debt", balance=-1))
        except sa.exc.IntegrityError as error:
            say(type(error.orig).__name__, error.orig.sqlstate)
        say(session.scalar(sa.select(sa.func.count(Customer.id))))
        session.execute(sa.insert(Customer), [{"name": f"bulk {i}"} for i in range(500)])
        session.commit()
        stream = session.execute(sa.select(Customer.id).execution_options(yield_per=50).order_by(Customer.id))
        say(sum(1 for _ in stream))


def main():
    sys.stdout.reconfigure(encoding="utf-8")
    engine = sa.create_engine("postgresql+psycopg://", connect_args={"options": "-c timezone=UTC"})
    with engine.connect() as connection:
        say(engine.dialect.server_version_info[0], connection.dialect.default_schema_name, connection.get_isolation_level())
    snapshots = engine.execution_options(isolation_level="REPEATABLE READ")
    with snapshots.connect() as connection:
        say(connection.get_isolation_level())
    create(engine)
    every_type(engine)
    look(engine)
    query(engine)
    Base.metadata.drop_all(engine, tables=[Order.__table__])
    say(sorted(sa.inspect(engine).get_table_names()))


main()
