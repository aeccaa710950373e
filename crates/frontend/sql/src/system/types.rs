//! Types, and what is told of them: collations, access methods, operator classes, functions.

use super::built_in::BUILT_IN;
use super::forms::{
    ARRAY_FORMS, ARRAY_SUBSCRIPTS, CSTRING, ENUM_FORMS, FORMS, INTERNAL as INTERNAL_TYPE,
    JSON_SUBSCRIPTS, NAME_SUBSCRIPTS, PLPGSQL_HANDLERS,
};
use super::{Scan, Spec, text};
use crate::catalog::{
    CLASSES, Catalog, Collation, Extension, INFORMATION_SCHEMA, Method, Oid, PG_CATALOG, Relation,
};
use crate::error::Result;
use crate::expr::{self, CatalogEntry, Scalar};
use crate::extension::PLPGSQL;
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use vellum_base::maps::{HashMap, HashSet};
use vellum_row::{Array, CATALOG_TYPES, TYPES, Type, Value};

pub(super) const RELATIONS: &[Spec] = &[
    Spec {
        name: "pg_type",
        oid: 1247,
        view: false,
        columns: "oid oid, typname name, typnamespace oid, typowner oid, typlen int2, typbyval bool, typtype char, \
         typcategory char, typispreferred bool, typisdefined bool, typdelim char, typrelid oid, typsubscript \
         regproc, typelem oid, typarray oid, typinput regproc, typoutput regproc, typreceive regproc, typsend \
         regproc, typmodin regproc, typmodout regproc, typanalyze regproc, typalign char, typstorage char, \
         typnotnull bool, typbasetype oid, typtypmod int4, typndims int4, typcollation oid, typdefaultbin \
         pg_node_tree, typdefault text, typacl _aclitem",
        fill: pg_type,
    },
    Spec {
        name: "pg_enum",
        oid: 3501,
        view: false,
        columns: "oid oid, enumtypid oid, enumsortorder float4, enumlabel name",
        fill: pg_enum,
    },
    Spec {
        name: "pg_collation",
        oid: 3456,
        view: false,
        columns: "oid oid, collname name, collnamespace oid, collowner oid, collprovider char, collisdeterministic bool, \
         collencoding int4, collcollate text, collctype text, colliculocale text, collversion text",
        fill: pg_collation,
    },
    Spec {
        name: "pg_am",
        oid: 2601,
        view: false,
        columns: "oid oid, amname name, amhandler regproc, amtype char",
        fill: pg_am,
    },
    Spec {
        name: "pg_opclass",
        oid: 2616,
        view: false,
        columns: "oid oid, opcmethod oid, opcname name, opcnamespace oid, opcowner oid, opcfamily oid, opcintype oid, \
         opcdefault bool, opckeytype oid",
        fill: pg_opclass,
    },
    Spec {
        name: "pg_language",
        oid: 2612,
        view: false,
        columns: "oid oid, lanname name, lanowner oid, lanispl bool, lanpltrusted bool, lanplcallfoid oid, laninline oid, \
         lanvalidator oid, lanacl _aclitem",
        fill: pg_language,
    },
    Spec {
        name: "pg_cast",
        oid: 2605,
        view: false,
        columns: "oid oid, castsource oid, casttarget oid, castfunc oid, castcontext char, castmethod char",
        fill: super::casts::pg_cast,
    },
    Spec {
        name: "pg_proc",
        oid: 1255,
        view: false,
        columns: "oid oid, proname name, pronamespace oid, proowner oid, prolang oid, procost float4, prorows float4, \
         provariadic oid, prosupport regproc, prokind char, prosecdef bool, proleakproof bool, proisstrict bool, \
         proretset bool, provolatile char, proparallel char, pronargs int2, pronargdefaults int2, prorettype oid, \
         proargtypes oidvector, proallargtypes _oid, proargmodes _char, proargnames _text, proargdefaults \
         pg_node_tree, protrftypes _oid, prosrc text, probin text, prosqlbody pg_node_tree, proconfig _text, \
         proacl _aclitem",
        fill: pg_proc,
    },
];

/// Number of the role that owns what the database came with.
pub(super) const OWNER: u32 = 10;
/// The language of functions that are part of the program.
const INTERNAL: u32 = 12;
/// That of the functions of extensions.
const C: u32 = 13;
/// `proargnames` and `probin` among the columns of `pg_proc`.
const PARAMETER_NAMES: usize = 22;
const LIBRARY: usize = 26;

/// `typbyval`.
pub(super) fn by_value(ty: Type) -> bool {
    matches!(ty.length(), 1 | 2 | 4 | 8) && ty.element().is_none()
}

/// `typalign`.
pub(super) fn alignment(ty: Type) -> &'static str {
    match ty {
        Type::Uuid | Type::Name => "c",
        Type::Interval => "d",
        _ => match ty.length() {
            1 => "c",
            2 => "s",
            8 => "d",
            _ => "i",
        },
    }
}

/// `typstorage`.
pub(super) fn storage(ty: Type) -> &'static str {
    match ty {
        Type::Numeric | Type::Inet | Type::Cidr => "m",
        Type::Int2Vector | Type::OidVector => "p",
        _ if ty.length() < 0 => "x",
        _ => "p",
    }
}

/// All types, arrays behind what they are of.
pub(super) fn all() -> impl Iterator<Item = Type> {
    let scalars = TYPES.into_iter().chain(CATALOG_TYPES);
    scalars.flat_map(|ty| {
        let array = Some(ty.array()).filter(|array| array.oid() != 0);
        std::iter::once(ty).chain(array)
    })
}

/// Types of which there are no values in columns: oid, name, category.
const PSEUDO_TYPES: [(u32, &str); 15] = [
    (CSTRING, "cstring"),
    (INTERNAL_TYPE, "internal"),
    (2279, "trigger"),
    (2280, "language_handler"),
    (325, "index_am_handler"),
    (269, "table_am_handler"),
    (2276, "any"),
    (2277, "anyarray"),
    (2776, "anynonarray"),
    (3500, "anyenum"),
    (2283, "anyelement"),
    (705, "unknown"),
    (5077, "anycompatible"),
    (5078, "anycompatiblearray"),
    (5079, "anycompatiblenonarray"),
];

/// The name of a type of which there are no values, by its oid.
pub(super) fn pseudo_name(oid: u32) -> Option<&'static str> {
    let found = PSEUDO_TYPES.iter().find(|(other, _)| *other == oid);
    found.map(|(_, name)| *name)
}

/// The oid of one of these names.
pub(super) fn pseudo_oid(name: &str) -> Option<u32> {
    let found = PSEUDO_TYPES.iter().find(|(_, other)| *other == name);
    found.map(|(oid, _)| *oid)
}

/// The name of a type by its oid, those without values included; with its schema where the search path does not lead to it.
pub(super) fn type_name(catalog: &Catalog, search_path: &[Oid], oid: u32) -> Option<String> {
    if let Some(name) = pseudo_name(oid) {
        return Some(name.to_owned());
    }
    if let Some(name) = catalog.types().domain_name(oid, search_path) {
        return Some(name);
    }
    if let Some(name) = super::row_types::name(catalog, search_path, oid) {
        return Some(name);
    }
    let ty = Type::from_oid(oid)?;
    let there = ty
        .enum_id()
        .is_none_or(|id| catalog.types().get(id).is_some());
    there.then(|| catalog.types().name_of(ty, search_path).into_owned())
}

/// Schema and `typname` of a type. That of arrays has an underscore in front.
pub(super) fn catalog_name(catalog: &Catalog, ty: Type) -> (Box<str>, Box<str>) {
    let own = ty.enum_id().and_then(|id| catalog.relation(id.oid()));
    match (own, ty) {
        (None, _) => ("pg_catalog".into(), ty.name().into()),
        (Some(own), _) => {
            let schema = catalog.namespace_name(own.namespace).into();
            let name = match ty {
                Type::Array(_) => format!("_{}", own.name).into(),
                _ => own.name.clone(),
            };
            (schema, name)
        }
    }
}

/// Whether a type's name without schema stands for it; none if there is no such type.
pub(super) fn is_type_visible(catalog: &Catalog, search_path: &[Oid], oid: u32) -> Option<bool> {
    type_name(catalog, search_path, oid)?;
    let id = Type::from_oid(oid).and_then(Type::enum_id);
    let Some(own) = id.and_then(|id| catalog.relation(id.oid())) else {
        return Some(true);
    };
    let mut path = search_path.iter();
    let first = path.find_map(|schema| catalog.type_named(*schema, &own.name));
    Some(first.is_some_and(|first| first.oid == own.oid))
}

pub(super) fn type_row(ty: Type) -> Vec<Value> {
    let is_array = matches!(ty, Type::Array(_));
    let known = FORMS.iter().find(|(other, ..)| *other == ty);
    let forms = known.map_or(ARRAY_FORMS, |(.., forms)| *forms);
    let [input, output, receive, send] = forms.map(Value::Oid);
    // Letters of a name are elements, too.
    let (element, subscript) = match (ty, ty.element()) {
        (_, Some(element)) => (element.oid(), ARRAY_SUBSCRIPTS),
        (Type::Name, None) => (Type::SingleChar.oid(), NAME_SUBSCRIPTS),
        (Type::Jsonb, None) => (0, JSON_SUBSCRIPTS),
        _ => (0, 0),
    };
    vec![
        Value::Oid(ty.oid()),
        text(ty.name()),
        Value::Oid(PG_CATALOG),
        Value::Oid(OWNER),
        Value::Int2(ty.length()),
        Value::Bool(by_value(ty)),
        text(if matches!(ty, Type::Record | Type::Void) {
            "p"
        } else {
            "b"
        }),
        text(ty.category().to_string()),
        Value::Bool(ty.is_preferred()),
        Value::Bool(true),
        text(","),
        Value::Oid(0),
        Value::Oid(subscript),
        Value::Oid(element),
        Value::Oid(ty.array_oid()),
        input,
        output,
        receive,
        send,
        Value::Oid(0),
        Value::Oid(0),
        Value::Oid(0),
        text(
            if is_array && ty.element().is_some_and(|ty| alignment(ty) == "d") {
                "d"
            } else {
                alignment(ty)
            },
        ),
        text(storage(ty)),
        Value::Bool(false),
        Value::Oid(0),
        Value::Int4(-1),
        Value::Int4(0),
        Value::Oid(Collation::of_type(ty)),
        Value::Null,
        Value::Null,
        Value::Null,
    ]
}

/// The rights on a type, if something was said of them.
pub(super) fn acl_of_type(scan: &Scan<'_>, own: &Relation) -> Value {
    let acl = own.acl.as_deref();
    acl.map_or(Value::Null, |acl| super::relations::acl_of(scan, acl))
}

/// A type that a user has made, or the type of its arrays.
fn user_type_row(scan: &Scan<'_>, own: &Relation, ty: Type) -> Vec<Value> {
    let mut row = type_row(ty);
    let (_, name) = catalog_name(scan.catalog, ty);
    (row[1], row[2], row[3]) = (text(name), Value::Oid(own.namespace), Value::Oid(own.owner));
    if let Type::Enum(_) = ty {
        row[31] = acl_of_type(scan, own);
        (row[5], row[6]) = (Value::Bool(true), text("e"));
        for (at, oid) in (15..19).zip(ENUM_FORMS) {
            row[at] = Value::Oid(oid);
        }
        (row[22], row[23]) = (text("i"), text("p"));
    }
    row
}

fn pg_enum(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for own in scan.catalog.types().enums() {
        for (number, label) in (1u32..).zip(&own.labels) {
            rows.push(vec![
                Value::Oid(label.oid),
                Value::Oid(own.id.oid()),
                Value::Float4(number as f32),
                text(label.text.clone()),
            ]);
        }
    }
    Ok(())
}

fn pg_type(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    rows.extend(all().map(type_row));
    for (own, domain) in super::domains::all(scan) {
        let id = domain.ty.enum_id();
        let base = match id.and_then(|id| scan.catalog.relation(id.oid())) {
            Some(base) => user_type_row(scan, base, domain.ty),
            None => type_row(domain.ty),
        };
        rows.push(super::domains::type_row(scan, own, domain, base));
    }
    for own in scan.catalog.user_types() {
        let types = own.as_type().map(|ty| [ty, ty.array()]);
        for ty in types.into_iter().flatten() {
            rows.push(user_type_row(scan, own, ty));
        }
    }
    super::row_types::rows(scan, rows);
    for (oid, name) in PSEUDO_TYPES {
        let mut row = type_row(Type::Oid);
        (row[0], row[1]) = (Value::Oid(oid), text(name));
        (row[6], row[7], row[8]) = (text("p"), text("P"), Value::Bool(false));
        row[14] = Value::Oid(0);
        row[15..19].fill(Value::Oid(0));
        rows.push(row);
    }
    Ok(())
}

fn pg_collation(_: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for own in &Collation::ALL {
        let locale = own.locale.map_or(Value::Null, text);
        rows.push(vec![
            Value::Oid(own.oid),
            text(own.name),
            Value::Oid(PG_CATALOG),
            Value::Oid(OWNER),
            text(own.provider),
            Value::Bool(true),
            Value::Int4(own.encoding),
            locale.clone(),
            locale,
            Value::Null,
            Value::Null,
        ]);
    }
    Ok(())
}

fn pg_am(_: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    let indexes = Method::ALL.into_iter().map(|method| {
        let (oid, handler) = method.oids();
        (oid, method.name(), handler, "i")
    });
    for (oid, name, handler, kind) in std::iter::once((2, "heap", 3, "t")).chain(indexes) {
        rows.push(vec![
            Value::Oid(oid),
            text(name),
            Value::Oid(handler),
            text(kind),
        ]);
    }
    Ok(())
}

fn pg_opclass(_: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for class in CLASSES {
        rows.push(vec![
            Value::Oid(class.oid),
            Value::Oid(class.method.oids().0),
            text(class.name),
            Value::Oid(PG_CATALOG),
            Value::Oid(OWNER),
            Value::Oid(class.family),
            Value::Oid(class.input),
            Value::Bool(class.default),
            Value::Oid(class.key),
        ]);
    }
    Ok(())
}

fn pg_language(_: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    let all = [
        (INTERNAL, "internal", false),
        (C, "c", false),
        (14, "sql", true),
        (13_563, PLPGSQL, true),
    ];
    for (oid, name, trusted) in all {
        let handlers = match oid {
            INTERNAL => [0, 0, 2246],
            C => [0, 0, 2247],
            14 => [0, 0, 2248],
            _ => PLPGSQL_HANDLERS,
        };
        let [call, inline, validator] = handlers.map(Value::Oid);
        rows.push(vec![
            Value::Oid(oid),
            text(name),
            Value::Oid(OWNER),
            Value::Bool(name == PLPGSQL),
            Value::Bool(trusted),
            call,
            inline,
            validator,
            Value::Null,
        ]);
    }
    Ok(())
}

/// A function as `pg_proc` tells it.
#[derive(Clone)]
struct Procedure {
    oid: u32,
    name: String,
    arguments: Vec<u32>,
    result: u32,
    /// `prokind`, `provolatile`.
    letters: [&'static str; 2],
    /// `proisstrict`, `proretset`.
    flags: [bool; 2],
    /// The extension that it belongs to, and the names of its parameters.
    of: Option<(Arc<Extension>, &'static [&'static str])>,
}

impl Procedure {
    fn new(oid: u32, name: String, arguments: Vec<u32>, result: u32) -> Self {
        Self {
            oid,
            name,
            arguments,
            result,
            letters: ["f", "s"],
            flags: [true, false],
            of: None,
        }
    }

    /// A function of an extension.
    fn of_extension(of: &Arc<Extension>, function: Scalar) -> Self {
        let entry = function.entry();
        let arguments = entry.arguments().map(expr::type_oid).collect();
        let result = expr::type_oid(entry.result);
        Self {
            letters: ["f", if entry.volatile { "v" } else { "i" }],
            of: Some((of.clone(), crate::bind::parameters_of(entry.name))),
            ..Self::new(entry.oid, entry.name.to_owned(), arguments, result)
        }
    }
}

/// The program's own functions, in the order of their oids.
struct Procedures {
    all: Vec<Procedure>,
    places: HashMap<u32, usize>,
    by_name: HashMap<String, Vec<u32>>,
}

impl Procedures {
    fn known() -> &'static Self {
        static KNOWN: OnceLock<Procedures> = OnceLock::new();
        KNOWN.get_or_init(|| {
            let all = own_procedures();
            let mut places = HashMap::default();
            let mut by_name: HashMap<String, Vec<u32>> = HashMap::default();
            for (at, one) in all.iter().enumerate() {
                places.entry(one.oid).or_insert(at);
                by_name.entry(one.name.clone()).or_default().push(one.oid);
            }
            Self {
                all,
                places,
                by_name,
            }
        })
    }
}

/// A function of the program, or of an extension that is there.
fn procedure(catalog: &Catalog, oid: u32) -> Option<Cow<'static, Procedure>> {
    let known = Procedures::known();
    if let Some(at) = known.places.get(&oid) {
        return Some(Cow::Borrowed(&known.all[*at]));
    }
    let own = crate::extension::function(oid)?;
    let has_it = |extension: &&Arc<Extension>| extension.functions().any(|one| one == own);
    let extension = catalog.extensions().into_iter().find(has_it)?;
    Some(Cow::Owned(Procedure::of_extension(extension, own)))
}

/// Whether the program has a function of this oid.
pub(super) fn is_own_function(oid: u32) -> bool {
    Procedures::known().places.contains_key(&oid)
}

fn procedures(catalog: &Catalog) -> Vec<Procedure> {
    let mut all = Procedures::known().all.clone();
    for extension in catalog.extensions() {
        let functions = extension.functions();
        all.extend(functions.map(|own| Procedure::of_extension(extension, own)));
    }
    all.sort_by_key(|procedure| procedure.oid);
    all
}

fn own_procedures() -> Vec<Procedure> {
    let of_entry = |entry: &CatalogEntry| {
        let arguments = entry.arguments().map(expr::type_oid).collect();
        let result = expr::type_oid(entry.result);
        Procedure::new(entry.oid, entry.name.to_owned(), arguments, result)
    };
    let mut all: Vec<Procedure> = expr::catalog_functions().map(of_entry).collect();
    let mut known: HashSet<u32> = all.iter().map(|procedure| procedure.oid).collect();
    for entry in expr::scalar_functions() {
        if entry.oid != 0 && known.insert(entry.oid) {
            let types = entry.arguments().map(|ty| ty.trim_end_matches('*'));
            let arguments = types.map(expr::type_oid).collect();
            let result = expr::type_oid(entry.result);
            let name = entry.name.to_owned();
            all.push(Procedure::new(entry.oid, name, arguments, result));
        }
    }
    for own in BUILT_IN {
        if known.insert(own.oid) {
            let arguments = own.argument_oids().collect();
            all.push(Procedure {
                letters: [own.kind, own.volatility],
                flags: [own.strict, own.returns_set],
                ..Procedure::new(own.oid, own.name.to_owned(), arguments, own.result_oid())
            });
        }
    }
    for (oid, name, arguments, result, volatility) in super::casts::FUNCTIONS {
        if known.insert(oid) {
            let arguments = arguments.split_whitespace().map(expr::type_oid).collect();
            let result = expr::type_oid(result);
            all.push(Procedure {
                letters: ["f", volatility],
                ..Procedure::new(oid, name.to_owned(), arguments, result)
            });
        }
    }
    super::forms::functions(&mut |oid, name, arguments, result| {
        all.push(Procedure::new(oid, name, arguments, result));
    });
    all.sort_by_key(|procedure| procedure.oid);
    all
}

/// Oids of the functions of a name, in a schema or along the search path.
pub(crate) fn functions_named(
    catalog: &Catalog,
    search_path: &[Oid],
    schema: Option<&str>,
    name: &str,
) -> Vec<u32> {
    let reached = crate::bind::functions_reached(catalog, search_path, schema, name);
    let own = Procedures::known().by_name.get(name);
    // Whose schema is written is looked for there alone, but for those of the system.
    let own = own.filter(|_| schema.is_none_or(|_| reached.is_empty()));
    let own = own.into_iter().flatten().copied();
    own.chain(reached.iter().map(|own| own.entry().oid))
        .collect()
}

/// Name, arguments and result of a function, as text.
pub(crate) fn function_of(catalog: &Catalog, oid: u32) -> Option<(String, String, String)> {
    let found = procedure(catalog, oid)?;
    let own = |oid: u32| Type::from_oid(oid).map(Type::sql_name);
    let shown = |oid: &u32| {
        pseudo_name(*oid)
            .or_else(|| own(*oid))
            .unwrap_or("-")
            .to_owned()
    };
    let parameters = found.of.as_ref().map_or(&[][..], |(_, names)| names);
    let arguments = found.arguments.iter().enumerate();
    let arguments = arguments.map(|(at, oid)| match parameters.get(at) {
        Some(name) => format!("{name} {}", shown(oid)),
        None => shown(oid),
    });
    let arguments: Vec<String> = arguments.collect();
    Some((
        found.name.clone(),
        arguments.join(", "),
        shown(&found.result),
    ))
}

/// Whether the name of a function stands for it along the search path; none if there is no such function.
pub(super) fn is_function_visible(
    catalog: &Catalog,
    search_path: &[Oid],
    oid: u32,
) -> Option<bool> {
    let (name, ..) = function_of(catalog, oid)?;
    Some(match crate::extension::function(oid) {
        Some(own) => {
            let all = crate::bind::functions_reached(catalog, search_path, None, &name);
            all.contains(&own)
        }
        None => true,
    })
}

/// The name of a function, with its schema unless the search path leads to it.
pub(super) fn function_name(catalog: &Catalog, search_path: &[Oid], oid: u32) -> Option<String> {
    let (name, ..) = function_of(catalog, oid)?;
    Some(match crate::extension::function(oid) {
        Some(own) => crate::bind::function_shown(catalog, search_path, own),
        None => crate::names::quoted(&name),
    })
}

/// The same with the types of its arguments, as `regprocedure` shows it.
pub(super) fn function_signature(
    catalog: &Catalog,
    search_path: &[Oid],
    oid: u32,
) -> Option<String> {
    let name = function_name(catalog, search_path, oid)?;
    let found = procedure(catalog, oid)?;
    let types = found.arguments.iter();
    let types = types.map(|ty| type_name(catalog, search_path, *ty));
    let types: Vec<String> = types
        .map(|name| name.unwrap_or_else(|| "-".to_owned()))
        .collect();
    Some(format!("{name}({})", types.join(",")))
}

/// The types of a function's arguments.
pub(super) fn arguments_of(catalog: &Catalog, oid: u32) -> Option<Vec<u32>> {
    Some(procedure(catalog, oid)?.arguments.clone())
}

fn pg_proc(scan: &Scan<'_>, rows: &mut Vec<Vec<Value>>) -> Result<()> {
    for procedure in procedures(scan.catalog) {
        let ([kind, volatility], [strict, returns_set]) = (procedure.letters, procedure.flags);
        let types: Vec<Value> = procedure
            .arguments
            .iter()
            .copied()
            .map(Value::Oid)
            .collect();
        let mut row = vec![
            Value::Oid(procedure.oid),
            text(procedure.name.as_str()),
            Value::Oid(match &procedure.of {
                Some((extension, _)) => extension.namespace,
                None if procedure.name.starts_with("_pg_") => INFORMATION_SCHEMA,
                None => PG_CATALOG,
            }),
            Value::Oid(OWNER),
            Value::Oid(match procedure.of {
                Some(_) => C,
                None => INTERNAL,
            }),
            Value::Float4(1.0),
            Value::Float4(0.0),
            Value::Oid(0),
            Value::Oid(0),
            text(kind),
            Value::Bool(false),
            Value::Bool(false),
            Value::Bool(strict),
            Value::Bool(returns_set),
            text(volatility),
            text("s"),
            Value::Int2(types.len() as i16),
            Value::Int2(0),
            Value::Oid(procedure.result),
            Value::Array(Array::vector(Type::Oid, &types)),
        ];
        row.resize(25, Value::Null);
        row.push(text(procedure.name));
        row.resize(30, Value::Null);
        if let Some((extension, parameters)) = procedure.of {
            if !parameters.is_empty() {
                let names = parameters.iter().map(|name| Value::text(*name));
                let names: Vec<Value> = names.collect();
                row[PARAMETER_NAMES] = Value::Array(Array::of(Type::Text, &names));
            }
            row[LIBRARY] = text(format!("$libdir/{}", extension.name));
        }
        rows.push(row);
    }
    Ok(())
}
