use super::*;
use crate::keys::WELL_KNOWN_KEY;

const OWN: &str = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const OTHER: &str = "ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";

fn check(arguments: &str) -> Result<Checked, String> {
    let arguments = std::iter::once("dayfly").chain(arguments.split_whitespace());
    Config::try_parse_from(arguments).unwrap().check()
}

/// What a listener does, in a word, or the start of its refusal.
fn outcome(arguments: &str) -> String {
    match check(arguments) {
        Ok(checked) => match checked.clear_text {
            ClearText::Served => "http and https".to_owned(),
            ClearText::Refused => "https".to_owned(),
        },
        Err(sentence) => sentence,
    }
}

/// Bind, key and clear text: every row of the matrix, for each of the two addresses.
#[test]
fn every_way_to_listen() {
    let own = format!("--key {OWN}");
    let known = format!("--key {WELL_KNOWN_KEY}");
    let refused = "The key that every emulator uses";
    for (listen, loopback) in [
        ("0", true),
        ("localhost:0", true),
        (":0", false),
        ("127.0.0.1:0", true),
        ("127.1.2.3:0", true),
        ("[::1]:0", true),
        ("[::ffff:127.0.0.1]:0", true),
        ("0.0.0.0:0", false),
        ("[::]:0", false),
        ("10.0.0.5:0", false),
        ("[2001:db8::1]:0", false),
    ] {
        for (key, flag, on_loopback, on_network) in [
            ("", "", "http and https", refused),
            ("", "--allow-clear-text", "http and https", refused),
            (&*known, "", "http and https", refused),
            (&*known, "--allow-clear-text", "http and https", refused),
            (&*own, "", "http and https", "https"),
            (&*own, "--allow-clear-text", "http and https", "http and https"),
            (&*own, "--admin-public", "http and https", "https"),
            (
                &*own,
                "--admin-public --allow-clear-text",
                "http and https",
                "The admin API takes the key in a header",
            ),
        ] {
            let expected = if loopback { on_loopback } else { on_network };
            for where_to in ["--listen", "--compute-listen"] {
                let arguments = format!("{where_to} {listen} {key} {flag}");
                let outcome = outcome(&arguments);
                assert!(outcome.starts_with(expected), "{arguments}: {outcome}");
                assert!(expected != refused || outcome.contains(listen), "{outcome}");
            }
        }
    }
}

/// With `--emulator`, every row of the same matrix is served.
#[test]
fn an_emulator_serves_everything_on_every_address() {
    let (own, read_only) = (format!("--key {OWN}"), format!("--read-only-key {OTHER}"));
    for listen in ["", "--listen 0", "--listen :0", "--listen 10.0.0.5:0"] {
        for key in ["", &*own, &*read_only] {
            for flags in ["", "--allow-clear-text --admin-public", "--compute-listen :0"] {
                let arguments = format!("--emulator {listen} {key} {flags}");
                let checked = check(&arguments).unwrap();
                assert!(checked.emulator && checked.loopback, "{arguments}");
                assert_eq!(checked.clear_text, ClearText::Served, "{arguments}");
                assert_eq!(checked.own_key, key == own, "{arguments}");
            }
        }
    }
}

#[test]
fn an_emulator_has_the_ports_of_the_emulators() {
    let ports = |arguments: &str| {
        let checked = check(arguments).unwrap();
        let show = |further: Further| {
            format!("{}{}", further.place, if further.is_asked_for { "!" } else { "" })
        };
        let further = [checked.compute_listen.map(show), checked.health_listen.map(show)];
        (checked.listen.to_string(), further.map(Option::unwrap_or_default))
    };
    for (arguments, listen, compute, health) in [
        ("", "localhost:8081", "", ""),
        ("--health-listen :1", "localhost:8081", "", ":1!"),
        ("--emulator", ":8081", ":8903", ":8080"),
        ("--emulator --listen 9000", "localhost:9000", "localhost:8903", "localhost:8080"),
        ("--emulator --listen 10.0.0.5:8080", "10.0.0.5:8080", "10.0.0.5:8903", ""),
        ("--emulator --listen :8903", ":8903", "", ":8080"),
        ("--emulator --compute-listen :1 --health-listen 2", ":8081", ":1!", "localhost:2!"),
    ] {
        let expected = (listen.to_owned(), [compute.to_owned(), health.to_owned()]);
        assert_eq!(ports(arguments), expected, "{arguments}");
    }
}

/// A health check finds nothing that a key would protect.
#[test]
fn an_address_for_health_checks_makes_no_network() {
    let checked = check("--health-listen :0").unwrap();
    assert!(checked.loopback && !checked.own_key);
    let arguments = format!("--listen :0 --health-listen 0 --key {OWN}");
    assert_eq!(outcome(&arguments), "https");
}

#[test]
fn the_emulators_variables_count_where_no_setting_of_ours_does() {
    let habits = Habits {
        port: Some(9000),
        protocol: EmulatorProtocol::Https,
        key: Some(OTHER.to_owned()),
        data: Some("d".into()),
        ..Habits::default()
    };
    let check = |arguments: &str| {
        let arguments = std::iter::once("dayfly").chain(arguments.split_whitespace());
        let mut config = Config::try_parse_from(arguments).unwrap();
        config.habits = habits.clone();
        config.check().unwrap()
    };
    let checked = check("--emulator");
    assert_eq!((checked.listen, checked.protocol), (Listen::Every(9000), EmulatorProtocol::Https));
    assert_eq!((checked.keys.primary.as_str(), checked.own_key), (OTHER, true));
    assert_eq!(checked.place, Place::Folder("d".into()));

    let checked = check(&format!("--emulator --listen 1 --key {OWN} --data e"));
    assert_eq!((checked.listen, checked.keys.primary.as_str()), (Listen::Loopback(1), OWN));
    assert_eq!(checked.place, Place::Folder("e".into()));
    assert_eq!(check("--emulator --memory").place, Place::Memory);
}

#[test]
fn what_makes_no_sense_is_refused_in_one_sentence() {
    for (arguments, expected) in [
        ("--key !", "The key of --key is not base64"),
        ("--key MDEyMzQ1Njc4OWFiY2Rl", "The key of --key has 15 bytes, fewer than 16"),
        ("--read-only-key MDEy", "The key of --read-only-key has 3 bytes"),
        (&format!("--key {OWN} --read-only-key {OWN}"), "The read-only key is the same"),
        (&format!("--read-only-key {WELL_KNOWN_KEY}"), "The read-only key is the same"),
        (
            &format!("--listen 0.0.0.0:0 --key {OWN} --read-only-key {WELL_KNOWN_KEY}"),
            "The key that every emulator uses",
        ),
        (
            &format!("--secondary-key {OWN} --read-only-key {OWN}"),
            "The read-only key is the same as a key that writes",
        ),
        (
            &format!("--listen :0 --key {OWN} --secondary-key {WELL_KNOWN_KEY}"),
            "The key that every emulator uses",
        ),
        ("--secondary-key MDEy", "The key of --secondary-key has 3 bytes"),
        (&format!("--key {OWN} --key-file x"), "Both --key and --key-file give the key"),
        ("--allow-host http://a", "The name 'http://a' of --allow-host is none"),
        ("--tls-cert x", "A certificate and its private key go together"),
        ("--tls-key x", "A certificate and its private key go together"),
        ("--tls-cert x --tls-key y --tls-san z", "With --tls-cert no certificate is generated"),
        ("--serverless --throughput enforced", "With --serverless nothing has a throughput"),
        ("--serverless --burst", "With --serverless nothing has a throughput"),
        ("--memory --data x", "With --memory nothing is kept"),
        ("--memory --cache 64", "With --memory everything is in memory"),
        ("--memory --durability sync", "With --memory nothing survives"),
        ("--tls-san a,b/c", "The name 'b/c' of --tls-san"),
        (
            "--compute-listen 127.0.0.1:8081",
            "--listen and --compute-listen are both localhost:8081",
        ),
        ("--emulator --health-listen :8081", "--listen and --health-listen are both :8081"),
        (
            "--compute-listen 1 --health-listen localhost:1",
            "--compute-listen and --health-listen are both localhost:1",
        ),
    ] {
        let sentence = outcome(arguments);
        assert!(sentence.starts_with(expected), "{arguments}: {sentence}");
        assert!(sentence.ends_with('.') && !sentence.contains('\n'), "{sentence}");
    }
}

#[test]
fn a_refusal_never_repeats_the_key() {
    for arguments in [format!("--key {OWN} --read-only-key {OWN}"), format!("--key {OWN}!")] {
        assert!(!outcome(&arguments).contains(OWN), "{arguments}");
    }
}

#[test]
fn settings_mean_what_they_say() {
    let checked = check(&format!(
        "--key {OWN} --read-only-key {OTHER} --tls-san a,*.b.example --tls-san 10.0.0.5 \
         --durability relaxed --data d --ttl-change-delay 2592000 --ttl-change-guard 12.5 \
         --lenient-order-by --cache 64 --container-quota 21474836480 --partition-quota 1024 \
         --serverless --feed-retention 36h"
    ))
    .unwrap();
    assert_eq!(checked.ttl_change_delay_seconds, 30 * 24 * 60 * 60);
    assert_eq!(checked.ttl_change_guard_percent, Some(12.5));
    assert_eq!(checked.feed_retention_minutes, 36 * 60);
    assert!(checked.lenient_order_by);
    assert_eq!(checked.container_quota, Some(20 << 30));
    assert_eq!(checked.partition_quota, Some(1024));
    assert!(checked.serverless);
    assert!(checked.own_key);
    assert_eq!(checked.keys.primary, OWN);
    assert_eq!(checked.keys.read_only.as_deref(), Some(OTHER));
    let Source::Made { names, .. } = &checked.tls else { panic!("{:?}", checked.tls) };
    assert!(names.ends_with(&["a", "*.b.example", "10.0.0.5"].map(str::to_owned)), "{names:?}");
    assert_eq!(checked.durability, Durability::Relaxed);
    assert_eq!(checked.cache_bytes, 64 * MIB);
    assert_eq!(checked.place, Place::Folder("d".into()));
}

#[test]
fn nothing_set_is_a_local_server() {
    let checked = check("").unwrap();
    assert_eq!(checked.listen.to_string(), "localhost:8081");
    assert_eq!(checked.keys.primary, WELL_KNOWN_KEY);
    assert!(!checked.own_key);
    assert!(!checked.lenient_order_by);
    assert_eq!(checked.container_quota, None);
    assert_eq!(checked.partition_quota, None);
    assert!(!checked.serverless);
    assert_eq!(checked.ttl_change_delay_seconds, 0);
    assert_eq!(checked.feed_retention_minutes, 7 * 24 * 60);
    assert_eq!(checked.ttl_change_guard_percent, None);
    assert_eq!(checked.durability, Durability::Sync);
    assert_eq!(checked.cache_bytes, memory::cache_bytes());
    assert_eq!(checked.place, Place::Folder(DATA_DEFAULT.into()));
    assert_eq!(check("--memory").unwrap().place, Place::Memory);
}

#[test]
fn only_known_variables_may_start_like_ours() {
    let check = |names: &[&str]| check_environment(names.iter().map(OsString::from));
    assert_eq!(check(&["HOME", "DAYFLY_KEY", "DAYFLY_LOG", "DAYFLY_MAX_CONNECTIONS"]), Ok(()));
    assert_eq!(check(&["DAYFLY_TTL_CHANGE_DELAY", "DAYFLY_ENDPOINT", "DAYFLY_CA"]), Ok(()));
    assert_eq!(check(&["DAYFLY_LENIENT_ORDER_BY"]), Ok(()));
    assert_eq!(check(&["DAYFLY_EMULATOR", "DAYFLY_HEALTH_LISTEN", "PORT"]), Ok(()));
    let sentence = check(&["DAYFLY_LISTEN", "DAYFLY_PORT"]).unwrap_err();
    assert!(sentence.starts_with("The environment variable DAYFLY_PORT is not"), "{sentence}");
}

#[test]
fn delays_and_guards_have_their_bounds() {
    for arguments in [
        "--cache 15",
        "--cache 1048577",
        "--cache 64MB",
        "--ttl-change-delay -1",
        "--ttl-change-delay 2592001",
        "--ttl-change-delay 1.5",
        "--feed-retention 59",
        "--feed-retention 11y",
        "--feed-retention 4000d",
        "--ttl-change-guard -1",
        "--ttl-change-guard 100.1",
        "--ttl-change-guard NaN",
        "--ttl-change-guard inf",
        "--ttl-change-guard many",
    ] {
        let arguments = std::iter::once("dayfly").chain(arguments.split_whitespace());
        assert!(Config::try_parse_from(arguments.clone()).is_err(), "{arguments:?}");
    }
    for percent in ["0", "100", "0.5"] {
        check(&format!("--ttl-change-guard {percent}")).unwrap();
    }
}

#[test]
fn a_command_goes_without_settings_of_the_server() {
    let parse = |arguments: &str| {
        let arguments = arguments.split_whitespace();
        Config::try_parse_from(std::iter::once("dayfly").chain(arguments))
    };
    assert!(parse("").unwrap().command.is_none());
    assert!(parse("--memory").unwrap().command.is_none());
    for command in [
        "ttl status a/b",
        "ttl --json status a/b",
        "ttl status a/b --json --endpoint http://localhost --key x --ca y",
        "ttl forecast a/b --buckets 3 --bucket-seconds 60",
        "ttl whatif a/b -1",
        "ttl whatif a/b off",
        "ttl explain a/b -id [1]",
        "ttl purge a/b",
        "key",
        "query a/b SELECT --explain --json",
        "query --endpoint http://localhost a/b SELECT --parameter @a=1 --parameter b=2",
    ] {
        assert!(parse(command).unwrap().command.is_some(), "{command}");
    }
    for wrong in [
        "more",
        "ttl",
        "ttl more a/b",
        "ttl forecast",
        "ttl status ab",
        "ttl status a/b/c",
        "ttl whatif a/b",
        "ttl explain a/b id",
        "--memory ttl status a/b",
        "ttl status a/b --memory",
        "key more",
        "query a/b",
        "query ab SELECT",
        "query a/b SELECT 1",
        "query a/b SELECT --parameter @a",
        "query a/b SELECT --lenient-order-by",
        "ttl status a/b --listen 127.0.0.1:1",
    ] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_command_line_is_well_formed() {
    Config::command().debug_assert();
}
