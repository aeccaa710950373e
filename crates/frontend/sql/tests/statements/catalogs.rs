//! System relations, and the functions that queries of them call.

use super::client::Client;

fn filled() -> Client {
    let mut client = Client::new();
    client.ok(
        "create table a (id int primary key, name text not null default 'x', n numeric(10,2) check (n > 0),
         at timestamptz default now());
         create table b (id bigserial primary key, a_id int references a(id) on delete cascade, v varchar(10) unique);
         create index a_name on a (name desc, n);
         create view v as select id, name from a where n > 1",
    );
    client
}

#[test]
fn system_relations_are_relations_like_others() {
    let mut client = filled();
    assert_eq!(
        client.ok("select relname, relkind from pg_class where relname in ('a', 'b', 'v', 'b_id_seq', 'a_pkey') order by 1"),
        "a|r\na_pkey|i\nb|r\nb_id_seq|S\nv|v"
    );
    // Joined, grouped, inside a view, with a parameter of the search path.
    assert_eq!(
        client.ok(
            "select c.relname, count(*) from pg_class c join pg_attribute a on a.attrelid = c.oid
             join pg_namespace n on n.oid = c.relnamespace
             where n.nspname = 'public' and c.relkind = 'r' group by c.relname order by 1"
        ),
        "a|4\nb|3"
    );
    client.ok("create view tables as select relname as name from pg_class where relkind = 'r'");
    assert_eq!(
        client.ok("select count(*) from tables where name in ('a', 'b')"),
        "2"
    );
    assert_eq!(
        client.ok("select count(*) from pg_catalog.pg_class x where x.relname = 'pg_class'"),
        "1"
    );
    assert_eq!(client.state("drop table pg_class"), "42501");
    assert_eq!(
        client.state("insert into pg_class (oid) values (1)"),
        "42809"
    );
    assert_eq!(client.state("select * from pg_nothing"), "42P01");
}

#[test]
fn system_relations_show_what_the_transaction_sees() {
    let mut client = filled();
    client.ok("begin; create table c (id int)");
    assert_eq!(
        client.ok("select count(*) from pg_tables where tablename = 'c'"),
        "1"
    );
    client.ok("rollback");
    assert_eq!(
        client.ok("select count(*) from pg_tables where tablename = 'c'"),
        "0"
    );
}

#[test]
fn every_system_relation_can_be_read() {
    let mut client = filled();
    let names = client.ok(
        "select n.nspname || '.' || c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where n.nspname in ('pg_catalog', 'information_schema') and c.relkind in ('r', 'v') order by 1",
    );
    assert!(names.lines().count() > 90, "{names}");
    for name in names.lines() {
        client.ok(&format!("select * from {name}"));
    }
    let twice = "select oid from pg_class group by oid having count(*) > 1";
    assert_eq!(client.ok(twice), "");
    let unknown = "select a.attrelid::regclass, a.attname from pg_attribute a left join pg_type y on y.oid = a.atttypid where y.oid is null";
    assert_eq!(client.ok(unknown), "");
}

#[test]
fn definitions_are_shown_as_postgresql_shows_them() {
    let mut client = filled();
    for (query, answer) in [
        (
            "select pg_get_indexdef('a_name'::regclass)",
            "CREATE INDEX a_name ON public.a USING btree (name DESC, n)",
        ),
        (
            "select pg_get_indexdef('a_name'::regclass, 1, true)",
            "name",
        ),
        (
            "select pg_get_constraintdef(oid) from pg_constraint where conname = 'a_n_check'",
            "CHECK ((n > (0)::numeric))",
        ),
        (
            "select pg_get_constraintdef(oid, true) from pg_constraint where conname = 'a_n_check'",
            "CHECK (n > 0::numeric)",
        ),
        (
            "select pg_get_constraintdef(oid) from pg_constraint where contype = 'f'",
            "FOREIGN KEY (a_id) REFERENCES a(id) ON DELETE CASCADE",
        ),
        (
            "create table x (c char(3) default 'abc', v varchar default 'd', b bigint default -1); \
          select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'x'::regclass order by adnum",
            "'abc'::bpchar\n'd'::character varying\n'-1'::integer",
        ),
        (
            "select adnum, pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'a'::regclass order by 1",
            "2|'x'::text\n4|now()",
        ),
        (
            "select pg_get_expr(adbin, adrelid) from pg_attrdef where adrelid = 'b'::regclass",
            "nextval('b_id_seq'::regclass)",
        ),
        (
            "select pg_get_serial_sequence('b', 'id')",
            "public.b_id_seq",
        ),
        (
            "select format_type(1043, 14), format_type(23, null), format_type(1700, 655366)",
            "character varying(10)|integer|numeric(10,2)",
        ),
        (
            "select 'a'::regclass, 'a'::regclass::oid = oid, oid::regclass::text from pg_class where relname = 'a'",
            "a|t|a",
        ),
        (
            "select 'int4'::regtype, 23::regtype, 'character varying'::regtype::oid",
            "integer|integer|1043",
        ),
        (
            "select 'pg_catalog'::regnamespace, 11::regnamespace::text",
            "pg_catalog|pg_catalog",
        ),
        (
            "select to_regclass('nowhere'), to_regclass('public.a')",
            "~|a",
        ),
        (
            "select current_schemas(true), current_schemas(false)",
            "{pg_catalog,public}|{public}",
        ),
        (
            "select pg_get_userbyid(10), pg_encoding_to_char(6), pg_table_is_visible('a'::regclass)",
            "vellum|UTF8|t",
        ),
        (
            "select quote_ident('select'), quote_ident('a b'), quote_literal('it''s')",
            "\"select\"|\"a b\"|'it''s'",
        ),
        (
            "select array_to_string(array[1, null, 3], ','), array_to_string(array['a', null], ',', '*')",
            "1,3|a,*",
        ),
        (
            "select 2 = any (array[1, 2]), 'c' = any ('{a,b}'::text[]), 3 <> all (array[1, 2])",
            "t|f|t",
        ),
        (
            "select array(select relname from pg_class where relname in ('a', 'b') order by 1)",
            "{a,b}",
        ),
        (
            "select (array[5, 6])[2], array_length(array[5, 6], 1), array[1] || 2",
            "6|2|{1,2}",
        ),
        (
            "select indkey, indkey[1] from pg_index where indexrelid = 'a_name'::regclass",
            "2 3|3",
        ),
        (
            "select relname from pg_class where relname operator(pg_catalog.~) '^(a)$' collate pg_catalog.default",
            "a",
        ),
        (
            "select has_table_privilege('a', 'SELECT'), has_table_privilege('vellum', 'a', 'INSERT')",
            "t|t",
        ),
        (
            "select u, o from unnest(array['x', 'y']) with ordinality as t(u, o)",
            "x|1\ny|2",
        ),
        (
            "select string_agg(relname, ', ') from (select relname from pg_class where relname in ('a', 'b') order by 1) s",
            "a, b",
        ),
    ] {
        assert_eq!(client.ok(query), answer, "{query}");
    }
    assert_eq!(
        client.ok("select array_upper(a, 1), s from (select array_prepend(1, '[2147483646:2147483646]={1}'::int[]) as a) t, generate_subscripts(a, 1) s"),
        "2147483647|2147483646\n2147483647|2147483647"
    );
    assert_eq!(client.state("select 'nowhere'::regclass"), "42P01");
    assert_eq!(client.state("select pg_get_userbyid('x')"), "22P02");
}

#[test]
fn subqueries_of_the_catalog_see_the_row_that_they_are_in() {
    let mut client = filled();
    assert_eq!(
        client.ok(
            "select a.attname, (select pg_get_expr(d.adbin, d.adrelid) from pg_attrdef d
               where d.adrelid = a.attrelid and d.adnum = a.attnum and a.atthasdef)
             from pg_attribute a where a.attrelid = 'a'::regclass and a.attnum > 0 order by a.attnum"
        ),
        "id|~\nname|'x'::text\nn|~\nat|now()"
    );
    assert_eq!(
        client.ok(
            "select c.relname, array(select conname from pg_constraint k where k.conrelid = c.oid order by 1)
             from pg_class c where c.relname in ('a', 'b')
             and exists (select 1 from pg_constraint k where k.conrelid = c.oid and k.contype = 'p') order by 1"
        ),
        "a|{a_n_check,a_pkey}\nb|{b_a_id_fkey,b_pkey,b_v_key}"
    );
    // Two levels outwards.
    assert_eq!(
        client.ok(
            "select c.relname from pg_class c where c.relname = 'a' and exists (select 1 from pg_index i
             where i.indrelid = c.oid and exists (select 1 from pg_class x where x.oid = i.indexrelid
             and x.relname = c.relname || '_pkey'))"
        ),
        "a"
    );
}

#[test]
fn information_schema_tells_what_the_standard_asks() {
    let mut client = filled();
    for (query, answer) in [
        (
            "select table_name, table_type from information_schema.tables where table_schema = 'public' order by 1",
            "a|BASE TABLE\nb|BASE TABLE\nv|VIEW",
        ),
        (
            "select column_name, data_type, is_nullable, column_default, numeric_precision, character_maximum_length, udt_name
             from information_schema.columns where table_name in ('a', 'b') order by table_name, ordinal_position",
            "id|integer|NO|~|32|~|int4\nname|text|NO|'x'::text|~|~|text\nn|numeric|YES|~|10|~|numeric
at|timestamp with time zone|YES|now()|~|~|timestamptz\nid|bigint|NO|nextval('b_id_seq'::regclass)|64|~|int8
a_id|integer|YES|~|32|~|int4\nv|character varying|YES|~|~|10|varchar",
        ),
        (
            "select constraint_name, constraint_type from information_schema.table_constraints
             where constraint_schema = 'public' and constraint_name !~ 'not_null$' order by 1",
            "a_n_check|CHECK\na_pkey|PRIMARY KEY\nb_a_id_fkey|FOREIGN KEY\nb_pkey|PRIMARY KEY\nb_v_key|UNIQUE",
        ),
        (
            "select constraint_name, column_name, ordinal_position, position_in_unique_constraint
             from information_schema.key_column_usage where table_name = 'b' order by 1",
            "b_a_id_fkey|a_id|1|1\nb_pkey|id|1|~\nb_v_key|v|1|~",
        ),
        (
            "select constraint_name, unique_constraint_name, update_rule, delete_rule
             from information_schema.referential_constraints",
            "b_a_id_fkey|a_pkey|NO ACTION|CASCADE",
        ),
        (
            "select check_clause from information_schema.check_constraints where constraint_name = 'a_n_check'",
            "((n > (0)::numeric))",
        ),
        ("select sequence_name, data_type from information_schema.sequences", "b_id_seq|bigint"),
    ] {
        assert_eq!(client.ok(query), answer, "{query}");
    }
}

#[test]
fn activity_shows_the_sessions_and_what_they_run() {
    let database = super::client::database();
    let (mut one, mut other) = (Client::of(&database), Client::of(&database));
    one.ok("set application_name = 'one'; begin; select 1");
    assert_eq!(
        other.ok("select application_name, state, query from pg_stat_activity order by backend_start, 1 desc limit 1"),
        "one|idle in transaction|set application_name = 'one'; begin; select 1"
    );
    drop(one);
    assert_eq!(other.ok("select count(*) from pg_stat_activity"), "1");
    other.ok("create table t (id int primary key); insert into t values (1); begin; select * from t for update");
    assert_eq!(
        other.ok("select relation, strength from vellum_locks"),
        "t|UPDATE"
    );
    assert_eq!(other.ok("select count(*) > 0 from vellum_snapshots"), "t");
}

#[test]
fn records_are_taken_apart_as_jdbc_takes_them_apart() {
    let mut client = Client::new();
    client.ok("create table t (a int, b int, c int, primary key (c, a))");
    let keys = "select a.attname, (information_schema._pg_expandarray(i.indkey)).n as seq,
         information_schema._pg_expandarray(i.indkey) as keys, a.attnum as num
         from pg_index i join pg_attribute a on a.attrelid = i.indrelid where i.indrelid = 't'::regclass and i.indisprimary";
    let query =
        format!("select attname, seq from ({keys}) r where r.num = (r.keys).x order by seq");
    assert_eq!(client.ok(&query), "c|1\na|2");
    assert_eq!(
        client
            .ok("select information_schema._pg_expandarray(array['x,', null]), pg_typeof(1::int2)"),
        "(\"x,\",1)|smallint\n(,2)|smallint"
    );
    assert_eq!(
        client.state("select (information_schema._pg_expandarray(array[1])).nope"),
        "42703"
    );
    assert_eq!(client.state("select (1).x"), "42809");
    assert_eq!(client.ok("select unnest(array[3, 4])"), "3\n4");
    assert_eq!(client.ok("select unnest(array[3, 4]) where false"), "");
    assert_eq!(
        client.ok("select i.indkey[0] from pg_index i where i.indrelid = 't'::regclass"),
        "3"
    );
    assert_eq!(
        client.ok("select pg_typeof(null), pg_typeof(null::int), pg_typeof(array[1])"),
        "unknown|integer|integer[]"
    );
    assert_eq!(client.ok("select j -> 'a' ->> 1, j -> 'a' -> -1, j ->> 'b', j -> 'nope' from (select '{\"a\": [1, \"x\"], \"b\": null}'::jsonb as j) s"), "x|\"x\"|~|~");
    assert_eq!(
        client.ok("select '{\"a\": [1,  2]}'::json -> 'a', '[1, null]'::json ->> 0"),
        "[1,  2]|1"
    );
    assert_eq!(client.state("select 1 -> 'a'"), "42883");
}

#[test]
fn functions_are_listed_however_calls_find_them() {
    let mut client = Client::new();
    let sql = "select proname, pg_get_function_arguments(oid), prorettype::regtype, prokind, proretset, provolatile from pg_proc
        where proname in ('length', 'lower', 'now', 'row_number', 'generate_subscripts', 'bool_or', 'array_to_json') order by proname, oid";
    assert_eq!(
        client.ok(sql),
        "array_to_json|anyarray|json|f|f|s
array_to_json|anyarray, boolean|json|f|f|s
bool_or|boolean|boolean|a|f|i
generate_subscripts|anyarray, integer|integer|f|t|i
length|text|integer|f|f|i
length|character|integer|f|f|i
length|bytea|integer|f|f|i
lower|text|text|f|f|i
now||timestamp with time zone|f|f|s
row_number||bigint|w|f|i"
    );
    let of_enums = "select pg_get_function_arguments(oid), prorettype::regtype from pg_proc where proname = 'max' and oid = 3526";
    assert_eq!(client.ok(of_enums), "anyenum|anyenum");
    let twice = "select count(*) from (select oid from pg_proc group by oid having count(*) > 1) t";
    assert_eq!(client.ok(twice), "0");
    assert_eq!(
        client.ok("select count(*) from pg_proc where prorettype = 0"),
        "0"
    );
}

#[test]
fn rules_tell_queries_as_they_were_written() {
    let mut client = Client::new();
    client.ok("create table t (k int)");
    client.ok("create view v as select x.k from t as a join t as b using (k) as x, rows from (generate_series(1, 2)) as r");
    let shown = client.ok("select ev_action from pg_rewrite where ev_class = 'v'::regclass");
    assert!(!shown.contains('\0'), "{shown}");
    assert!(shown.contains("USING(k) AS x"), "{shown}");
    assert!(shown.contains("ROWS FROM ("), "{shown}");
}
