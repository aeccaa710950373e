//! SELECT.

use super::client::Client;

fn cities() -> Client {
    let mut client = Client::new();
    client.ok(
        "CREATE TABLE city (id int PRIMARY KEY, name text NOT NULL, people int, land varchar(2))",
    );
    client.ok("CREATE INDEX ON city (land, people DESC)");
    client.ok(
        "INSERT INTO city VALUES (1, 'Erlangen', 112528, 'BY'), (2, 'Garching', 17711, 'BY'), \
         (3, 'Ulm', 126329, 'BW'), (4, 'Nirgends', NULL, NULL), (5, 'Weimar', 65228, 'TH')",
    );
    client
}

#[test]
fn expressions_without_tables_are_computed() {
    let mut client = Client::new();
    for (sql, expected) in [
        ("select 1 + 2 * 3", "7"),
        ("select 7 / 2, -7 / 2, 7 % 3, -7 % 3", "3|-3|1|-1"),
        ("select 'a' || 'b' || 3", "ab3"),
        ("select 1.5 + 1", "2.5"),
        ("select 1 = 1, 1 <> 1, null = 1", "t|f|~"),
        ("select null or true, null and true, not null", "t|~|~"),
        (
            "select 1 in (1, null), 2 in (1, null), 2 not in (1, 3)",
            "t|~|t",
        ),
        ("select case when false then 1 end", "~"),
        (
            "select case 2 when 1 then 'x' when 2 then 'y' else 'z' end",
            "y",
        ),
        (
            "select coalesce(null, 2, 3), nullif(1, 1), greatest(1, 3, 2)",
            "2|~|3",
        ),
        (
            "select upper('abc'), length('äö'), substring('abcdef' from 2 for 3)",
            "ABC|2|bcd",
        ),
        (
            "select '2024-02-29'::date + 1, date '2024-03-01' - date '2024-02-01'",
            "2024-03-01|29",
        ),
        (
            "select timestamp '2024-01-31' + interval '1 month'",
            "2024-02-29 00:00:00",
        ),
        ("select '5'::int + 1, cast('1.50' as numeric(5,1))", "6|1.5"),
        (
            "select 2147483647, 2147483648, 1e3",
            "2147483647|2147483648|1000",
        ),
        (
            "select 'abc' like 'a%', 'abc' like '_', 'ABC' ilike 'abc'",
            "t|f|t",
        ),
        (
            "select true is not false, null is unknown, 1 is distinct from null",
            "t|t|t",
        ),
        ("select 3 between 1 and 3, 0 not between 1 and 3", "t|t"),
        (
            "select (select 5), exists (select 1), 3 in (select 3 union select 4)",
            "5|t|t",
        ),
        ("values (1, 'a'), (2, 'b')", "1|a\n2|b"),
        (
            "select count(*), sum(g), avg(g), min(g), max(g) from generate_series(1, 4) g",
            "4|10|2.5000000000000000|1|4",
        ),
    ] {
        assert_eq!(client.ok(sql), expected, "{sql}");
    }
}

#[test]
fn errors_have_the_states_of_postgresql() {
    let mut client = cities();
    for (sql, state) in [
        ("select 1 / 0", "22012"),
        ("select 2147483647 + 1", "22003"),
        ("select 'x'::int", "22P02"),
        ("select 1 = 'x'", "22P02"),
        ("select true + 1", "42883"),
        ("select nothing(1)", "42883"),
        ("select nix from city", "42703"),
        ("select * from nix", "42P01"),
        ("select c.id from city", "42P01"),
        ("select id from city a, city b", "42702"),
        ("select 1 from city a, city a", "42712"),
        ("select land, count(*) from city", "42803"),
        ("select * from city where id", "42804"),
        ("select * from city where count(*) > 1", "42803"),
        ("select (select id from city)", "21000"),
        ("select 1 limit -1", "2201W"),
        ("selec 1", "42601"),
        ("select $1", "42P02"),
        ("select 1 order by 3", "42P10"),
    ] {
        assert_eq!(client.state(sql), state, "{sql}");
    }
}

#[test]
fn rows_are_found_by_key_by_index_and_without() {
    let mut client = cities();
    for (sql, expected) in [
        ("select name from city where id = 3", "Ulm"),
        ("select name from city where 3 = id and people > 0", "Ulm"),
        ("select name from city where id = 30000000000", ""),
        ("select id from city where id < 3", "1\n2"),
        (
            "select id from city where id > 1 and id <= 3 order by id desc",
            "3\n2",
        ),
        ("select id from city where id in (5, 1, 1, 9)", "1\n5"),
        (
            "select name from city where land = 'BY' order by people desc",
            "Erlangen\nGarching",
        ),
        (
            "select name from city where land = 'BY' order by people",
            "Garching\nErlangen",
        ),
        (
            "select name from city where land = 'BY' and people < 100000",
            "Garching",
        ),
        ("select name from city where people is null", "Nirgends"),
        ("select id from city order by name", "1\n2\n4\n3\n5"),
        (
            "select id from city order by people nulls first limit 2",
            "4\n2",
        ),
        ("select id from city order by id limit 2 offset 1", "2\n3"),
        (
            "select max(people), min(name), count(people), count(*) from city",
            "126329|Erlangen|4|5",
        ),
        (
            "select land, count(*) from city group by land order by land",
            "BW|1\nBY|2\nTH|1\n~|1",
        ),
        (
            "select land l, sum(people) from city group by 1 having count(*) > 1 order by l",
            "BY|130239",
        ),
        (
            "select distinct land from city where land is not null order by land",
            "BW\nBY\nTH",
        ),
        (
            "select name from city where id = (select max(id) from city)",
            "Weimar",
        ),
        (
            "select name from city where land in (select land from city where id = 1) order by id",
            "Erlangen\nGarching",
        ),
        (
            "select name x from (select * from city where id < 3) c where people > 20000",
            "Erlangen",
        ),
        (
            "select id from city where id < 3 union all select 7 order by 1 desc",
            "7\n2\n1",
        ),
        (
            "select id from city except select 3 order by id limit 2",
            "1\n2",
        ),
    ] {
        assert_eq!(client.ok(sql), expected, "{sql}");
    }
}

#[test]
fn paths_are_those_that_explain_tells() {
    let mut client = cities();
    for (sql, expected) in [
        (
            "select * from city where id = 3",
            "Index Lookup using city_pkey",
        ),
        (
            "select * from city where id > 3",
            "Index Range Scan using city_pkey",
        ),
        (
            "select * from city where land = 'BY'",
            "Index Range Scan using city_land_people_idx",
        ),
        ("select * from city where name = 'Ulm'", "Seq Scan on city"),
        (
            "select id from city order by id desc limit 1",
            "Index Order Scan Backward using city_pkey",
        ),
        (
            "update city set people = 1 where id = 3",
            "Index Lookup using city_pkey",
        ),
        (
            "delete from city where land = 'BY'",
            "Index Range Scan using city_land_people_idx",
        ),
    ] {
        let told = client.ok(&format!("explain {sql}"));
        assert!(told.contains(expected), "{sql}: {told}");
        assert!(!told.contains("Sort"), "{sql}: {told}");
    }
}

#[test]
fn joins_follow_keys() {
    let mut client = cities();
    client.ok("CREATE TABLE land (code varchar(2) PRIMARY KEY, name text)");
    client.ok("INSERT INTO land VALUES ('BY', 'Bayern'), ('BW', 'Baden'), ('SN', 'Sachsen')");
    for (sql, expected) in [
        (
            "select c.name, l.name from city c join land l on l.code = c.land where c.id = 1",
            "Erlangen|Bayern",
        ),
        (
            "select c.id, l.name from city c left join land l on l.code = c.land order by c.id",
            "1|Bayern\n2|Bayern\n3|Baden\n4|~\n5|~",
        ),
        (
            "select l.code from land l left join city c on c.land = l.code where c.id is null",
            "SN",
        ),
        (
            "select count(*) from city, land where land.code = city.land",
            "3",
        ),
        ("select count(*) from city cross join land", "15"),
        (
            "select land.name, count(*) from land join city on code = land group by land.name order by 2 desc",
            "Bayern|2\nBaden|1",
        ),
    ] {
        assert_eq!(client.ok(sql), expected, "{sql}");
    }
}

#[test]
fn a_sort_beyond_its_memory_is_refused() {
    let mut client = Client::new();
    client.ok("set work_mem = '64kB'");
    let sql = "select g from generate_series(1, 100000) g order by -g limit 1";
    assert_eq!(client.state(sql), "53200");
    client.ok("set work_mem = '64MB'");
    assert_eq!(client.ok(sql), "100000");
}

/// A query in parentheses lost its own limit, and what it says about its subqueries with it: the one around it, which has none, was taken for both. Rows
/// came that were not asked for, or a statement panicked.
#[test]
fn regress_a_query_in_parentheses_keeps_its_limit_and_its_subqueries() {
    let mut client = Client::new();
    let series = "select g from generate_series(1, 5) g";
    for (query, rows) in [
        ("(select (select 7))".to_owned(), "7"),
        (format!("({series} order by g limit 2)"), "1\n2"),
        (format!("(({series} order by g offset 3))"), "4\n5"),
        (
            format!("({series} limit 4) order by g desc limit 2"),
            "4\n3",
        ),
        (format!("({series} limit 4) offset 3"), "4"),
        (
            format!("({series} limit 1) union all (select (select 9))"),
            "1\n9",
        ),
        (format!("select count(*) from (({series} limit 2)) x"), "2"),
    ] {
        assert_eq!(client.ok(&query), rows, "{query}");
    }
}

/// More columns than PostgreSQL allows were counted in 16 bits: a panic, or a row that says that it has fewer.
#[test]
fn regress_lists_and_tables_have_as_many_columns_as_may_be() {
    let mut client = Client::new();
    let list = |count: usize| vec!["1"; count].join(", ");
    assert_eq!(
        client.ok(&format!("select {}", list(1664))).len(),
        2 * 1664 - 1
    );
    assert_eq!(client.state(&format!("select {}", list(1665))), "54011");
    assert_eq!(client.state(&format!("values ({})", list(70_000))), "54011");
    let columns = |count: usize| {
        let columns: Vec<String> = (0..count).map(|n| format!("a{n} int")).collect();
        format!("create table wide ({})", columns.join(", "))
    };
    assert_eq!(client.state(&columns(1601)), "54011");
    client.ok(&columns(1600));
    assert_eq!(
        client.state("alter table wide add column more int"),
        "54011"
    );
    assert_eq!(client.state("select * from wide x, wide y"), "54011");
    let keys = |count: usize| {
        (0..count)
            .map(|n| format!("a{n}"))
            .collect::<Vec<_>>()
            .join(", ")
    };
    assert_eq!(
        client.state(&format!("create index on wide ({})", keys(33))),
        "54011"
    );
    client.ok(&format!("create index on wide ({})", keys(32)));
    let unique = format!("alter table wide add unique ({})", keys(33));
    assert_eq!(client.state(&unique), "54011");
}

#[test]
fn clauses_of_with_that_are_not_there_are_no_syntax_errors() {
    let mut client = Client::new();
    let tree = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3)";
    for clause in ["SEARCH DEPTH FIRST BY n SET o", "CYCLE n SET c USING p"] {
        assert_eq!(
            client.state(&format!("{tree} {clause} SELECT n FROM t")),
            "0A000",
            "{clause}"
        );
    }
    assert_eq!(
        client.state(&format!("{tree} SEARCHING SELECT n FROM t")),
        "42601"
    );
    let merges = "WITH w AS (MERGE INTO t USING t s ON true WHEN MATCHED THEN DELETE) SELECT 1";
    client.ok("CREATE TABLE t (a int)");
    assert_eq!(client.state(merges), "0A000");
}

#[test]
fn a_case_may_have_thousands_of_branches() {
    let mut client = Client::new();
    client.ok("create table t (id int primary key, n text); insert into t select g, '' from generate_series(1, 2000) g");
    let branches: String = (1..=2000)
        .map(|n| format!(" when (id = {n}) then ('v' || {n})::text"))
        .collect();
    client.ok(&format!("update t set n = (case{branches} else null end)"));
    assert_eq!(
        client.ok("select count(*), max(n) from t where n = 'v' || id"),
        "2000|v999"
    );
}

/// For each of them the whole statement was walked, and all of its names looked through: ten thousand never ended, and no cancel was heard.
#[test]
fn regress_thousands_of_queries_of_with_are_counted_once() {
    let mut client = Client::new();
    let with: Vec<String> = (0..10_000).map(|n| format!("a{n} as (select 1)")).collect();
    let with = with.join(", ");
    assert_eq!(client.ok(&format!("with {with} select 1")), "1");
    assert_eq!(
        client.state(&format!("with {with}, a7 as (select 2) select 1")),
        "42712"
    );
}
