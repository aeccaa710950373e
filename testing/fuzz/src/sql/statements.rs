//! Statements to begin with: the corpus of `vellum-sql`, what programs send, and texts that are hostile as a whole.

use super::words::{Pool, Word, words};
use std::path::Path;
use vellum_base::random::Random;

/// Tables whose rows are looked at in the end.
pub const TABLES: [&str; 7] = ["t", "c", "district", "orders", "line", "note", "seen"];

/// Data of a COPY, in its three forms.
pub const COPY_DATA: [&[u8]; 6] = [
    b"1\t2\t3\t4\t5\t6\n7\t\\N\ta\\tb\t1.5\t2\t2024-01-01\n\\.\n",
    b"1001,5,x\n1002,,\"a \"\"b\"\"\"\n",
    b"9\t1\n10\t2\n",
    b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\x04\0\0\0\x07\0\0\0\x04\0\0\0\x01\xff\xff",
    b"\xff\xfe\t\xc3\x28\n",
    b"",
];

/// What every script begins with: tables with keys, indexes, checks, references.
const SETUP: [&str; 12] = [
    "create table t (id int primary key, a int, b text, n numeric(8,2), f float8, d date)",
    "create index on t (a, b desc)",
    "create unique index on t (n)",
    "insert into t select g, g % 7, 'b' || g % 5, g * 1.25, g / 3.0, date '2024-01-01' + g from generate_series(1, 60) g",
    "create table c (id int primary key, n int not null default 7, s varchar(4), m numeric(6,2) check (m >= 0), unique (s))",
    "insert into c values (1, 1, 'a', 1), (2, 8, 'b', 2.5), (3, 9, null, null)",
    "create table district (id int primary key, name text not null, next bigint not null default 1, tax numeric(4,4))",
    "create table orders (d int references district, id bigint, customer int, at timestamptz default now(), primary key (d, id))",
    "create table line (d int, o bigint, number smallint, item int not null, amount numeric(6,2), \
     primary key (d, o, number), foreign key (d, o) references orders on delete cascade)",
    "insert into district select g, 'district ' || g, 1, 0.1 from generate_series(1, 5) g",
    "insert into orders select g % 5 + 1, g, g * 7 from generate_series(1, 20) g; insert into line select g % 5 + 1, g, 1, g, g * 2.5 from generate_series(1, 20) g",
    "create table note (id bigserial primary key, body jsonb, raw bytea, kind uuid, long text, span interval, at time)",
];

/// What programs send: orders and payments, pages of lists, queues, definitions, blocks, cursors, copies.
const REAL: [&str; 62] = [
    "begin",
    "begin isolation level repeatable read",
    "start transaction isolation level read committed read only",
    "commit",
    "commit",
    "rollback",
    "savepoint one",
    "rollback to savepoint one",
    "release savepoint one",
    "update district set next = next + 1 where id = $1 returning next, tax",
    "select next, tax from district where id = $1 for update",
    "insert into orders (d, id, customer) values ($1, $2, $3)",
    "insert into orders (d, id, customer) values (1, 1, 1) on conflict (d, id) do update set customer = excluded.customer + 1 returning *",
    "insert into line (d, o, number, item, amount) values ($1, $2, $3, $4, $5), (1, 1, 2, 3, 4.50)",
    "select o.id, o.at, l.number, l.amount from orders o join line l on l.d = o.d and l.o = o.id where o.d = 2 order by o.id desc, l.number limit 10",
    "select d.name, count(*), sum(l.amount), avg(l.amount), max(l.item) from district d left join line l on l.d = d.id group by d.name having count(*) > 1 order by 2 desc",
    "select count(distinct item) from line where d = 1 and o between 1 and 20 and amount < 100",
    "select * from orders where (d, id) > (2, 5) order by d, id limit 5",
    "delete from orders where d = 3 and id = (select min(id) from orders where d = 3) returning id",
    "delete from district where id = 5",
    "update line set amount = amount * 1.1, item = case when item > 5 then item - 1 else null end where d = 1",
    "select id from t where a = any (array[1, 2, 3]) for update skip locked limit 2",
    "select t.id, u.id from t join t u on t.a = u.a where t.id < 10 and u.b like 'b%'",
    "select x.a, x.s from (select a, sum(n) as s from t group by a) x where x.s > 10 order by 1",
    "with r as (select id, a from t where id < 10) select r.a, count(*) from r group by r.a",
    "with recursive n (i) as (select 1 union all select i + 1 from n where i < 10) select sum(i) from n",
    "select a, b from t union select id, s from c except select 1, 'a' order by 1 limit 3 offset 2",
    "select id, row_number() over (partition by a order by id) from t",
    "select exists (select 1 from orders o where o.d = district.id), coalesce(nullif(name, ''), 'none') from district",
    "select d.name, (select max(id) from orders o where o.d = d.id) as newest from district d where d.id in (select d from line)",
    "insert into note (body, raw, long) values ('{\"a\": [1, 2, {\"b\": null}]}', '\\xdeadbeef', repeat('long ', 3000))",
    "select id, body -> 'a' -> 2, body ->> 'a', length(long), substring(long from 3 for 5), position('g' in long) from note",
    "update note set long = long || long, body = '[]', span = interval '1 month' + span where id = 1",
    "select extract(year from d), date_trunc('month', d), d + interval '1 month', d - date '2024-01-01' from t where id < 5",
    "select now() - at, at::date from orders where at > now() - interval '1 day'",
    "select cast(n as text), f::numeric(10,3), round(n, 1), abs(f), mod(id, 7), power(2, a), sqrt(f) from t",
    "select upper(b), lower(b), trim(both 'b' from b), replace(b, 'b', 'c'), lpad(b, 5, '*'), md5(b), b ~ '^b[0-4]+$' from t where b is distinct from 'b1'",
    "explain select * from t where a = 3 and b = 'b3'",
    "explain (costs off) update t set a = 1 where id = 2",
    "create table seen (id int primary key, at timestamp default current_timestamp, what varchar(20) not null)",
    "insert into seen (id, what) select id, b from t on conflict do nothing",
    "create index on seen (what, id)",
    "alter table seen add column extra text default 'x'",
    "alter table seen drop column extra",
    "alter table seen rename column what to which",
    "alter table t alter a set not null",
    "drop table if exists seen cascade",
    "create view v as select a, sum(n) as s from t group by a",
    "select * from v where s > 100",
    "truncate line",
    "create sequence if not exists q start 5 increment by 3 cycle maxvalue 20",
    "select nextval('q'), currval('q'), setval('q', 9)",
    "copy t from stdin",
    "copy c (id, n, s) from stdin with (format csv)",
    "copy c (id, n) from stdin with (format binary)",
    "copy (select * from t where id < 5) to stdout with (format csv, header)",
    "copy t to stdout with (format binary)",
    "declare k scroll cursor for select id, b from t order by id",
    "fetch 5 from k",
    "prepare p (int, text) as select id from t where a = $1 and b = $2; execute p (1, 'b1'); deallocate p",
    "select relname, relkind from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace where nspname = 'public'",
    "show all; select version(), current_user, current_setting('timezone'), pg_typeof(1.5)",
];

/// Statements in words, to make others of.
#[derive(Clone, Debug)]
pub struct Corpus {
    /// What every script begins with.
    pub setup: Vec<String>,
    /// Statements of the corpus.
    told: Vec<Vec<Word>>,
    /// Statements of programs.
    real: Vec<Vec<Word>>,
    /// All words of all of them.
    pub pool: Pool,
}

impl Corpus {
    /// Reads the corpus of `vellum-sql`.
    ///
    /// # Errors
    /// I/O.
    pub fn read() -> std::io::Result<Self> {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/frontend/sql/tests/corpus");
        let mut files: Vec<_> = std::fs::read_dir(folder)?.collect::<Result<_, _>>()?;
        // A folder has no order, and a seed stands for one script.
        files.sort_by_key(std::fs::DirEntry::file_name);
        let mut told = Vec::new();
        for file in files {
            let text = std::fs::read_to_string(file.path())?;
            told.extend(records(&text).map(|statement| words(&statement)));
        }
        let real: Vec<Vec<Word>> = REAL
            .iter()
            .chain(&SETUP)
            .map(|statement| words(statement))
            .collect();
        let pool = Pool::of(told.iter().chain(&real));
        Ok(Self {
            setup: SETUP.map(str::to_owned).to_vec(),
            told,
            real,
            pool,
        })
    }

    /// Every statement as it was written.
    pub fn all(&self) -> impl Iterator<Item = &Vec<Word>> {
        self.told.iter().chain(&self.real)
    }

    /// One of them.
    pub fn pick(&self, random: &mut Random) -> &[Word] {
        let from = if random.chance(1, 2) {
            &self.told
        } else {
            &self.real
        };
        &from[random.below(from.len() as u64) as usize]
    }
}

/// The statements of a file in the form of sqllogictest.
fn records(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split("\n\n").filter_map(|record| {
        let mut lines = record
            .lines()
            .skip_while(|line| line.starts_with('#') || line.is_empty());
        let head = lines.next()?;
        let statement = lines.take_while(|line| *line != "----").collect::<Vec<_>>();
        let known = head.starts_with("statement") || head.starts_with("query");
        known.then(|| statement.join("\n"))
    })
}

/// Texts that are hostile whatever their length is.
pub const HOSTILE: [&str; 36] = [
    "select 9.9 ^ 99999",
    "select power(10::numeric, 99999)",
    "select power(0.5::numeric, 1e9::numeric)",
    "select exp(99999::numeric)",
    "select ln(1e-16383::numeric)",
    "select sqrt(9e131071::numeric)",
    "select 1e131071 * 1e131071",
    "select 1 / 1e-16383",
    "select round(1.5, 2147483647), round(1.5, -2147483648)",
    "select (-9223372036854775808) / -1",
    "select (-9223372036854775808) % -1",
    "select abs(-9223372036854775808)",
    "select (-2147483648)::int / -1",
    "select e'\\xff\\xfe'",
    "select e'\\xc3\\x28'",
    "select convert_from('\\xff28', 'UTF8')",
    "select U&'\\D800'",
    "select U&'\\+110000'",
    "select e'\\uD800'",
    "select e'\\U00110000'",
    "select chr(0)",
    "select chr(55296)",
    "select chr(-1)",
    "select 'a\u{0}b'",
    "select e'\\000'",
    "select '\"\\u0000\"'::jsonb",
    "select '\"\\ud800\"'::jsonb",
    "select 'a' ~ '((((a{1,100}){1,100}){1,100}){1,100}){1,100}'",
    "select length(repeat('a', 2147483647))",
    "select lpad('a', 2147483647)",
    "select rpad('', -2147483648)",
    "select count(*) from generate_series(1, 9223372036854775807)",
    "select * from generate_series(9223372036854775806, 9223372036854775807)",
    "select 1 limit 9223372036854775807 offset 9223372036854775807",
    "create table x (a numeric(1000000, 999999), b varchar(2147483647), c char(0), d timestamp(99))",
    "create view x as select 1; create or replace view x as select * from x",
];

/// Texts that are hostile as a whole: what they are, and the text. `many` is how deep and how long.
pub fn hostile(many: usize) -> Vec<(&'static str, String)> {
    let nested = |open: &str, inside: &str, close: &str| {
        format!("{}{inside}{}", open.repeat(many), close.repeat(many))
    };
    let select = |expression: String| format!("select {expression}");
    vec![
        ("parentheses", select(nested("(", "1", ")"))),
        ("parentheses that do not end", select("(".repeat(many))),
        (
            "parentheses that did not begin",
            select(format!("1{}", ")".repeat(many))),
        ),
        ("subqueries", nested("(select ", "1", ")")),
        (
            "subqueries in FROM",
            nested("select * from (", "select 1", ") x"),
        ),
        (
            "parentheses in FROM",
            format!("select * from {}t{}", "(".repeat(many), ")".repeat(many)),
        ),
        ("exists", nested("select exists (", "select 1", ")")),
        ("calls", select(nested("abs(", "1", ")"))),
        ("cases", select(nested("case when true then ", "1", " end"))),
        ("casts", select(nested("cast(", "1", " as int)"))),
        ("short casts", select(format!("1{}", "::int".repeat(many)))),
        ("arrays", select(nested("array[", "1", "]"))),
        ("rows", select(nested("row(", "1", ")"))),
        ("negations", select(format!("{}true", "not ".repeat(many)))),
        ("minuses", select(format!("{}1", "- ".repeat(many)))),
        ("sums", select(format!("1{}", " + 1".repeat(many)))),
        (
            "strings one after another",
            select(format!("'a'{}", " || 'a'".repeat(many))),
        ),
        ("comparisons", select(format!("1{}", " = 1".repeat(many)))),
        (
            "conjunctions",
            select(format!("true{}", " and true".repeat(many))),
        ),
        (
            "conditions",
            format!(
                "select 1 where true{}",
                " or (true and not false)".repeat(many)
            ),
        ),
        ("betweens", select(nested("1 between ", "1", " and 2"))),
        ("is null", select(format!("1{}", " is null".repeat(many)))),
        (
            "collations",
            select(format!("'a'{}", " collate \"C\"".repeat(many))),
        ),
        (
            "subscripts",
            select(format!("array[1]{}", "[1]".repeat(many))),
        ),
        (
            "arrows",
            select(format!("'{{}}'::jsonb{}", " -> 'a'".repeat(many))),
        ),
        ("columns", select(format!("1{}", ", 1".repeat(many)))),
        ("a list", select(format!("1 in (1{})", ", 1".repeat(many)))),
        (
            "rows of values",
            format!("values (1){}", ", (1)".repeat(many)),
        ),
        (
            "unions",
            format!("select 1{}", " union all select 1".repeat(many)),
        ),
        (
            "joins",
            format!(
                "select 1 from (select 1) a{}",
                " cross join (select 1) b".repeat(many)
            ),
        ),
        (
            "names of tables",
            format!("select 1 from pg_class{}", ", pg_class".repeat(many)),
        ),
        (
            "WITH",
            format!(
                "with a as (select 1){} select 1",
                ", b as (select 1)".repeat(many)
            ),
        ),
        (
            "nested WITH",
            nested("with a as (", "select 1", ") select 1"),
        ),
        ("statements", "select 1;".repeat(many / 10)),
        ("nothing, often", ";".repeat(many)),
        ("comments in comments", select(nested("/*", "", "*/") + "1")),
        ("a comment that does not end", select("/*".repeat(many))),
        ("a name", format!("select 1 as {}", "a".repeat(many))),
        (
            "a name in quotes",
            format!("select 1 as \"{}\"", "\"\"".repeat(many)),
        ),
        ("parts of a name", format!("select a{}", ".a".repeat(many))),
        ("a number", select("9".repeat(many))),
        ("a fraction", select(format!("0.{}", "1".repeat(many)))),
        ("an exponent", select(format!("1e{}", "9".repeat(many)))),
        (
            "a product of large numbers",
            select(format!("{0} * {0}", "9".repeat(many))),
        ),
        (
            "a text of a number",
            select(format!("'{}'::numeric", "9".repeat(many))),
        ),
        (
            "a text of an integer",
            select(format!("'{}'::int", "9".repeat(many))),
        ),
        (
            "a text of a float",
            select(format!("'{}'::float8", "9".repeat(many))),
        ),
        (
            "a text of an interval",
            select(format!("'{} days'::interval", "9".repeat(many))),
        ),
        (
            "a text of a date",
            select(format!("'{}-01-01'::date", "9".repeat(many))),
        ),
        ("a text", select(format!("'{}'", "a".repeat(many)))),
        ("quotes", select(format!("'{}'", "''".repeat(many)))),
        (
            "a text that does not end",
            select(format!("'{}", "''".repeat(many))),
        ),
        (
            "a text between dollars",
            select(format!("${0}$x${0}$", "a".repeat(many))),
        ),
        ("dollars", select("$".repeat(many))),
        ("a parameter", select(format!("${}", "9".repeat(many)))),
        (
            "parameters",
            select(format!("$1{}", " + $65536".repeat(many))),
        ),
        ("bits", select(format!("b'{}'", "1".repeat(many)))),
        (
            "bytes",
            select(format!("'\\x{}'::bytea", "ff".repeat(many))),
        ),
        ("escapes", select(format!("e'{}'", "\\377".repeat(many)))),
        (
            "json",
            select(format!("'{}{}'::jsonb", "[".repeat(many), "]".repeat(many))),
        ),
        (
            "json of objects",
            select(format!(
                "'{}1{}'::json",
                "{\"a\":".repeat(many),
                "}".repeat(many)
            )),
        ),
        (
            "a pattern",
            select(format!("'{}' like '{}b'", "a".repeat(100), "%a".repeat(50))),
        ),
        (
            "a long pattern",
            select(format!(
                "'{0}' like '{1}'",
                "a".repeat(many),
                "%".repeat(many)
            )),
        ),
        (
            "an expression of patterns",
            select(format!("'{}' ~ '{}$'", "a".repeat(60), "(a+)+".repeat(10))),
        ),
        (
            "groups of patterns",
            select(format!("'a' ~ '{}a{}'", "(".repeat(many), ")".repeat(many))),
        ),
        (
            "a table with many columns",
            format!(
                "create table x (a0 int{})",
                (1..many).map(|n| format!(", a{n} int")).collect::<String>()
            ),
        ),
        (
            "an index with many columns",
            format!(
                "create table x (a int); create index on x (a{})",
                ", a".repeat(many)
            ),
        ),
        (
            "checks",
            format!(
                "create table x (a int {})",
                "check (a > 0) ".repeat(many / 5)
            ),
        ),
        (
            "a default",
            format!("create table x (a int default {})", nested("(", "1", ")")),
        ),
    ]
    .into_iter()
    .chain(high(many))
    .collect()
}

/// Texts whose trees are high though little in them is nested: chains of operators, and chains in each other. They are read, compiled,
/// kept, shown and run.
fn high(many: usize) -> Vec<(&'static str, String)> {
    let chain = |first: &str, link: &str| format!("{first}{}", link.repeat(many));
    let column = |link: &str| format!("select {} from (select 1 as a) x", chain("a", link));
    // As many in all, in calls within calls.
    let within = (0..30).fold("1".to_owned(), |inner, _| {
        format!("coalesce({inner}, 0){}", " + 1".repeat(many / 30))
    });
    let views: String = (1..30)
        .map(|n| {
            let sum = " + 1".repeat(many / 30);
            format!("create view v{n} as select a{sum} as a from v{}; ", n - 1)
        })
        .collect();
    let sum = chain("a", " + 1");
    let list = |item: &dyn Fn(usize) -> String| (0..many).map(item).collect::<Vec<_>>().join(", ");
    vec![
        (
            "subqueries in a list",
            format!("select 1 in ({})", list(&|n| format!("(select {n})"))),
        ),
        (
            "aggregates in a list",
            format!(
                "select 1 in ({}) from (select 1 as a) x",
                list(&|n| format!("count(a + {n})"))
            ),
        ),
        (
            "keys of groups",
            format!(
                "select 1 from (select 1 as a) x group by {}",
                list(&|n| format!("a + {n}"))
            ),
        ),
        ("sums of a column", column(" + a")),
        ("sums in calls", format!("select {within}")),
        ("tests for null", column(" notnull")),
        ("tests for null, short", column(" isnull")),
        ("bounds either way", column(" between symmetric a and a")),
        (
            "bounds either way in each other",
            format!(
                "select {}a{} from (select true as a) x",
                "(".repeat(many),
                " between symmetric true and false)".repeat(many)
            ),
        ),
        ("patterns", column(" similar to 'a'")),
        ("overlaps", column(" overlaps a")),
        ("named operators", column(" operator(pg_catalog.+) a")),
        ("casts of a column", column("::bigint::int")),
        ("texts of a column", column(" || 'a'")),
        (
            "unions of columns",
            chain("select 1, 2", " union all select 1, 2"),
        ),
        (
            "intervals",
            format!("select {}'1'", "interval ".repeat(many)),
        ),
        (
            "joins in parentheses",
            format!("select * from {}pg_class", "(pg_class join ".repeat(many)),
        ),
        (
            "types of tables",
            format!("select cast(1 as {}int", "table(a ".repeat(many)),
        ),
        (
            "paths in json_table",
            format!(
                "select * from json_table('', '$' columns({}",
                "nested path '$' columns (".repeat(many)
            ),
        ),
        (
            "a condition, an order, groups",
            format!(
                "select count(*) from (select 1 as a) x where {sum} > 0 group by {sum} order by {sum}"
            ),
        ),
        (
            "a check that is run",
            format!(
                "create table x (a int check ({sum} > 0)); insert into x values (1); update x set a = 2"
            ),
        ),
        (
            "a default that is run",
            format!(
                "create table x (a int, b int default {}); insert into x (a) values (1)",
                chain("1", " + 1")
            ),
        ),
        (
            "a check that is shown",
            format!(
                "create table x (a int check ({sum} > 0)); select pg_get_constraintdef(oid) from pg_constraint"
            ),
        ),
        (
            "views of views",
            format!("create view v0 as select 1 as a; {views}select a from v29"),
        ),
        (
            "a cursor",
            format!(
                "begin; declare k cursor for select {sum} from (select 1 as a) x; fetch k; commit"
            ),
        ),
        (
            "a prepared statement",
            format!(
                "prepare p (int) as select $1{}; execute p (1); deallocate p",
                " + 1".repeat(many)
            ),
        ),
        (
            "a join that no program runs",
            format!(
                "create table x (a int); create table y (b int); insert into x values (1), (2); insert into y values (1), (2); \
                 select {sum} from x join y on a = b and {sum} > 0 order by {sum}"
            ),
        ),
        (
            "unions of joins",
            format!(
                "create table x (a int); create table y (b int); {}",
                chain(
                    "select a from x join y on a = b",
                    " union select a from x join y on a = b"
                )
            ),
        ),
        (
            "a plan",
            format!("explain select {sum} from (select 1 as a) x"),
        ),
        (
            "a change",
            format!(
                "create table x (a int); insert into x values ({}) returning {sum}; update x set a = {sum}; delete from x where {sum} > 0",
                chain("1", " + 1")
            ),
        ),
        (
            "tables",
            format!(
                "select count(*) from {}",
                list(&|n| format!("(values (1)) a{n}"))
            ),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_what_stands_between_head_and_answer() {
        let text =
            "# a file\n\nstatement ok\ncreate table t (\nid int)\n\nquery T\nselect 1\n----\n1\n";
        let found: Vec<String> = records(text).collect();
        assert_eq!(found, ["create table t (\nid int)", "select 1"]);
    }
}
