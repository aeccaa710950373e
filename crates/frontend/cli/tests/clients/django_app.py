"""Django at a server that the environment names (PGHOST ...): its own migrations, an application's migrations, models. `django_app.out` is what it prints at PostgreSQL 15."""

import datetime
import decimal
import os
import uuid

import django
from django.conf import settings

settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": os.environ["PGDATABASE"],
            "HOST": os.environ["PGHOST"],
            "PORT": os.environ["PGPORT"],
            "USER": os.environ["PGUSER"],
            "PASSWORD": os.environ.get("PGPASSWORD", ""),
        }
    },
    INSTALLED_APPS=["django.contrib." + name for name in ["contenttypes", "auth", "sessions", "messages", "admin"]],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    USE_TZ=True,
    SECRET_KEY="of a test",
)
django.setup()

from django.contrib.auth.models import Group, Permission, User  # noqa: E402
from django.contrib.sessions.backends.db import SessionStore  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import IntegrityError, connection, migrations, models, transaction  # noqa: E402
from django.db.migrations.state import ProjectState  # noqa: E402
from django.db.models import Avg, Case, Count, Exists, F, Max, OuterRef, Q, Subquery, Sum, Value, When, Window  # noqa: E402
from django.db.models import functions as fn  # noqa: E402


def say(*words):
    print(*words, flush=True)


def fails(work):
    try:
        with transaction.atomic():
            work()
    except Exception as error:
        cause = error.__cause__
        return type(error).__name__, getattr(cause, "sqlstate", None), getattr(getattr(cause, "diag", None), "constraint_name", None)
    return "nothing fails"


def fill_titles(apps, editor):
    book = apps.get_model("shop", "Book")
    book.objects.update(title=fn.Upper("name"))


def steps():
    """The application's migrations: lists of operations."""
    key = models.BigAutoField(primary_key=True)
    to = lambda name, **more: models.ForeignKey(name, **{"on_delete": models.CASCADE, **more})  # noqa: E731
    yield [
        migrations.CreateModel("Author", [("id", key), ("name", models.CharField(max_length=40)), ("born", models.DateField(null=True)), ("friends", models.ManyToManyField("self", symmetrical=False))]),
        migrations.CreateModel(
            "Book",
            [
                ("id", key),
                ("name", models.CharField(max_length=80, db_index=True)),
                ("author", to("shop.author", related_name="books")),
                ("price", models.DecimalField(max_digits=8, decimal_places=2)),
                ("data", models.JSONField(default=dict)),
                ("code", models.UUIDField(default=uuid.uuid4)),
                ("sold", models.PositiveIntegerField(default=0)),
                ("weight", models.FloatField(null=True)),
                ("cover", models.BinaryField(null=True)),
                ("lasts", models.DurationField(null=True)),
                ("at", models.TimeField(null=True)),
                ("made", models.DateTimeField(default=datetime.datetime(2024, 5, 6, 7, 8, 9, tzinfo=datetime.timezone.utc))),
                ("slug", models.SlugField(null=True)),
                ("small", models.SmallIntegerField(default=1)),
                ("big", models.BigIntegerField(default=2**40)),
                ("good", models.BooleanField(default=True)),
                ("ip", models.URLField(default="http://a/")),
            ],
            options={"unique_together": {("name", "author")}, "ordering": ["id"]},
        ),
        migrations.CreateModel("Tag", [("id", key), ("word", models.CharField(max_length=20, unique=True)), ("books", models.ManyToManyField("shop.book", related_name="tags"))]),
    ]
    yield [
        migrations.AddField("book", "title", models.TextField(default="?")),
        migrations.RunPython(fill_titles, migrations.RunPython.noop),
        migrations.AlterField("book", "name", models.CharField(max_length=200, db_index=True)),
        migrations.AlterField("author", "name", models.TextField()),
        migrations.RenameField("book", "sold", "copies"),
        migrations.AddIndex("book", models.Index(fields=["author", "-price"], name="by_price")),
        migrations.AddIndex("book", models.Index(fn.Lower("name"), name="by_lower_name")),
        migrations.AddIndex("book", models.Index(fields=["copies"], name="by_copies", condition=Q(good=True), include=["price"])),
        migrations.AddConstraint("book", models.CheckConstraint(condition=Q(price__gte=0), name="price_not_negative")),
        migrations.AddConstraint("book", models.UniqueConstraint(fields=["slug"], condition=Q(good=True), name="slug_of_good")),
        migrations.AddConstraint("tag", models.UniqueConstraint(fields=["word"], name="word_later", deferrable=models.Deferrable.DEFERRED)),
    ]
    yield [
        migrations.AlterField("book", "weight", models.DecimalField(max_digits=10, decimal_places=3, null=True)),
        migrations.AlterField("book", "copies", models.BigIntegerField(default=0)),
        migrations.AddField("book", "second", to("shop.author", null=True, on_delete=models.SET_NULL, related_name="seconds")),
        migrations.AlterUniqueTogether("book", {("name", "author", "made")}),
        migrations.RemoveField("book", "ip"),
        migrations.RenameModel("Tag", "Label"),
        migrations.RenameIndex("book", old_name="by_price", new_name="by_price_too"),
        migrations.RemoveIndex("book", "by_copies"),
        migrations.RemoveConstraint("book", "slug_of_good"),
        migrations.AlterField("book", "slug", models.SlugField(default="none", unique=False)),
        migrations.AlterModelTable("author", "shop_writer"),
        migrations.RunSQL("create view shop_dear as select id, name from shop_book where price > 10", "drop view shop_dear"),
    ]


def migrate():
    say("# migrations")
    call_command("migrate", verbosity=0)
    call_command("migrate", "--check", verbosity=0)
    say(Permission.objects.count(), sorted(connection.introspection.table_names()))
    state = ProjectState.from_apps(django.apps.apps)
    done = []
    for number, operations in enumerate(steps()):
        migration = migrations.Migration(f"{number:04}", "shop")
        migration.operations = operations
        before = state.clone()
        with connection.schema_editor(atomic=True) as editor:
            state = migration.apply(state, editor)
        done.append((migration, before))
        if number == 0:
            author = state.apps.get_model("shop", "author").objects.create(name="Early")
            state.apps.get_model("shop", "book").objects.create(name="First", author=author, price=1, slug="f")
    say(state.apps.get_model("shop", "book").objects.values_list("name", "title", "copies", "slug").get())
    # Back and forth.
    for migration, before in reversed(done[1:]):
        with connection.schema_editor(atomic=True) as editor:
            migration.unapply(before, editor)
    for migration, before in done[1:]:
        with connection.schema_editor(atomic=True) as editor:
            migration.apply(before.clone(), editor)
    return ProjectState({name: model.clone() for name, model in state.models.items()}).apps


def look():
    say("# what is there")
    with connection.cursor() as cursor:
        for table in ["shop_book", "shop_writer", "shop_label", "shop_label_books"]:
            names = lambda found: {plain(name): found[name] for name in found}  # noqa: E731
            plain = lambda name: "_".join(part for part in name.split("_") if len(part) != 8)  # noqa: E731
            constraints = names(connection.introspection.get_constraints(cursor, table))
            for name in sorted(constraints):
                own = constraints[name]
                say(table, name, own["columns"], [word for word in ("primary_key", "unique", "check", "index") if own[word]], own["foreign_key"], own.get("orders"))
            for column in connection.introspection.get_table_description(cursor, table):
                say(table, column.name, connection.introspection.get_field_type(column.type_code, column), column.internal_size, column.precision, column.scale, column.null_ok)
            say(connection.introspection.get_sequences(cursor, table))
            say(sorted(connection.introspection.get_relations(cursor, table).items()))


def query(apps):
    say("# models")
    Author, Book, Label = (apps.get_model("shop", name) for name in ("author", "book", "label"))
    Book.objects.all().delete()
    Author.objects.all().delete()
    ann, bob = Author.objects.bulk_create([Author(name="Ann", born=datetime.date(1950, 1, 2)), Author(name="Bob")])
    ann.friends.add(bob)
    day = datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.timezone.utc)
    Book.objects.bulk_create(
        Book(name=f"Book {n}", author=ann if n % 3 else bob, price=decimal.Decimal(n) * 5, copies=n * n, made=day + datetime.timedelta(days=n * 20), weight=decimal.Decimal("1.5") * n, data={"pages": n * 100, "langs": ["en", "de"][: n % 3], "deep": {"n": n}}, code=uuid.UUID(int=n), lasts=datetime.timedelta(hours=n), at=datetime.time(n, 30), cover=bytes([n, 0, 255]), good=n != 2)
        for n in range(1, 8)
    )
    one = Book.objects.get(name="Book 3")
    say(one.author.name, one.price, one.copies, one.made, one.weight, one.data, one.code, one.lasts, one.at, bytes(one.cover), one.good)
    say(list(Book.objects.filter(data__pages__gt=400).values_list("name", flat=True)), Book.objects.filter(data__deep__n=2).count(), Book.objects.filter(data__langs__contains=["de"]).count(), Book.objects.filter(data__has_key="deep").count())
    say(list(Author.objects.annotate(n=Count("books"), most=Max("books__price"), all=Sum("books__copies")).order_by("name").values_list("name", "n", "most", "all")))
    say(Book.objects.aggregate(Avg("price"), Sum("copies"), high=Max("weight")))
    say(list(Book.objects.annotate(month=fn.TruncMonth("made")).values("month").annotate(n=Count("id")).order_by("month").values_list("month", "n")))
    say(list(Book.objects.annotate(kind=Case(When(price__lt=15, then=Value("low")), default=Value("high"))).values_list("kind").annotate(n=Count("id")).order_by("kind")))
    say(list(Book.objects.annotate(rank=Window(fn.Rank(), partition_by=F("author"), order_by=F("price").desc())).values_list("name", "rank").order_by("name")))
    dearest = Book.objects.filter(author=OuterRef("pk")).order_by("-price")
    say(list(Author.objects.annotate(best=Subquery(dearest.values("name")[:1]), any=Exists(dearest.filter(price__gt=30))).order_by("id").values_list("name", "best", "any")))
    say(list(Book.objects.filter(Q(name__icontains="BOOK") & ~Q(author__name="Bob"), made__year=2024, made__week_day__in=[1, 2, 3, 4, 5, 6, 7]).order_by("-price").values_list("name", flat=True)[1:3]))
    say(list(Book.objects.filter(name__regex=r"[67]$").union(Book.objects.filter(price=5)).order_by("name").values_list("name", flat=True)))
    say(list(Author.objects.filter(books__price__gt=10).distinct().values_list("name", flat=True).order_by("name")))
    say(Book.objects.select_related("author").filter(author__friends__name="Bob").count(), Author.objects.filter(books__isnull=False).dates("born", "year").count())
    say(Book.objects.filter(price__gt=20).update(copies=F("copies") + 1, title=fn.Concat("name", Value("!"))), Book.objects.in_bulk([one.pk])[one.pk].title, Book.objects.exclude(second__isnull=True).exists())
    labels = Label.objects.bulk_create([Label(word=word) for word in ("new", "old", "red")])
    labels[0].books.set(Book.objects.filter(price__lte=15))
    one.tags.add(*labels)
    say(sorted(one.tags.values_list("word", flat=True)), Book.objects.filter(tags__word="new").count(), [len(book.tags.all()) for book in Book.objects.prefetch_related("tags")])
    Group.objects.create(name="g")
    say(len(Group.objects.bulk_create([Group(name="g"), Group(name="h")], ignore_conflicts=True)), Group.objects.count())
    User.objects.bulk_create([User(username="u", email="1"), User(username="v", email="2")])
    User.objects.bulk_create([User(username="u", email="3"), User(username="w", email="4")], update_conflicts=True, unique_fields=["username"], update_fields=["email"])
    say(list(User.objects.order_by("username").values_list("username", "email")))
    say(User.objects.update_or_create(username="u", defaults={"email": "5"})[1], User.objects.get_or_create(username="x")[1])
    for book in (books := list(Book.objects.all())):
        book.copies += 10
    say(Book.objects.bulk_update(books, ["copies"]), Book.objects.aggregate(Sum("copies")))
    say(list(Book.objects.order_by("id").iterator(chunk_size=2))[-1].name, Book.objects.filter(pk__in=[book.pk for book in books]).explain().split("\n")[0] != "")
    session = SessionStore()
    session["a"] = 1
    session.save()
    say(SessionStore(session.session_key)["a"], User.objects.create_superuser("root", "r@x", "pw").has_perm("auth.add_user"))
    return Author, Book, Label


def change(Author, Book, Label):
    say("# transactions")
    ann = Author.objects.get(name="Ann")
    with transaction.atomic():
        say([book.name for book in Book.objects.select_for_update(of=("self",), skip_locked=True).select_related("author").filter(price__lt=12)])
        Author.objects.select_for_update(nowait=True).get(pk=ann.pk)
        Author.objects.select_for_update(no_key=True).get(pk=ann.pk)
    say(fails(lambda: Book.objects.create(name="Book 1", author=ann, price=-1)))
    say(fails(lambda: User.objects.create(username="u")))
    say(fails(lambda: Book.objects.create(name="n", author_id=0, price=1))[:2])

    def later():
        Book.objects.create(id=900, name="n", author_id=901, price=1)
        Author.objects.create(id=901, name="Late")

    say(fails(later))
    with transaction.atomic():
        a, b = Label.objects.order_by("id")[:2]
        Label.objects.filter(pk=a.pk).update(word="tmp")
        Label.objects.filter(pk=b.pk).update(word="new")
        Label.objects.filter(pk=a.pk).update(word="old")
    say(list(Label.objects.order_by("id").values_list("word", flat=True)))
    with transaction.atomic():
        kept = Author.objects.create(name="Kept")
        try:
            with transaction.atomic():
                Author.objects.create(name="Lost")
                raise IntegrityError
        except IntegrityError:
            pass
        point = transaction.savepoint()
        Book.objects.create(name="bad", author_id=12345, price=1)
        transaction.savepoint_rollback(point)
    say(kept.pk is not None, Author.objects.filter(name="Lost").exists(), Book.objects.filter(name="bad").exists())
    with connection.constraint_checks_disabled():
        pass
    with transaction.atomic():
        Book.objects.create(id=950, name="orphan", author_id=12345, price=1)
        try:
            connection.check_constraints()
        except IntegrityError as error:
            say(error.__cause__.sqlstate)
            transaction.set_rollback(True)
    say(ann.delete()[0] if not Book.objects.filter(name="orphan").exists() else "orphan", Book.objects.count())
    call_command("flush", interactive=False, verbosity=0)
    say(User.objects.count(), Permission.objects.count() > 0)


apps = migrate()
look()
change(*query(apps))
