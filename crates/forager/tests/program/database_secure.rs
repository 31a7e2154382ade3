//! A connection to PostgreSQL that nobody else can read: the server shows who it is, or it is not talked to.

use crate::common::{Ran, forager, run_command};
use crate::server::Cluster;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

type Authority = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Has a server show a certificate for a name, to all who come from now on.
fn show(cluster: &Cluster, authority: &Authority, name: &str) {
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, authority).unwrap();
    for (file, pem) in [("own.crt", certificate.pem()), ("own.key", key.serialize_pem())] {
        // Written by the server, which takes only a key that is its own and that nobody else can read.
        let write = format!(
            "COPY (SELECT unnest(string_to_array('{}', E'\\n'))) TO PROGRAM 'umask 077 && cat > {file}'",
            pem.trim()
        );
        cluster.sql(&write);
    }
    for setting in ["ssl_cert_file = 'own.crt'", "ssl_key_file = 'own.key'", "ssl = on"] {
        cluster.sql(&format!("ALTER SYSTEM SET {setting}"));
    }
    cluster.sql("SELECT pg_reload_conf()");
}

/// Asks for the schema by way of an address with these parameters.
fn ask(cluster: &Cluster, parameters: &str) -> Ran {
    let url = cluster.url.replace("sslmode=disable", parameters);
    run_command(forager().args(["db", "status", "--store", &url]), "")
}

/// The status of a worker that is started.
fn work(cluster: &Cluster, parameters: &str) -> i32 {
    let url = cluster.url.replace("sslmode=disable", parameters);
    let run = ["run", "--until-idle", "--quiet", "--contact", "a@b.example", "--store", &url];
    run_command(forager().args(run), "").status
}

/// Waits until the server has taken in what it was told.
fn wait_for(cluster: &Cluster, parameters: &str) {
    let began = std::time::Instant::now();
    while ask(cluster, parameters).status != 0 {
        assert!(began.elapsed().as_secs() < 60, "{parameters}: {:?}", ask(cluster, parameters));
    }
}

#[test]
fn a_server_is_talked_to_if_it_is_who_it_should_be() {
    let cluster = Cluster::start();
    let refused = ask(&cluster, "sslmode=require");
    assert!(refused.stderr.contains("server does not support TLS"), "without TLS: {}", refused.stderr);
    assert_eq!(work(&cluster, "sslmode=require"), 4, "no use to try again");
    run_command(forager().args(["db", "migrate", "--store", &cluster.url]), "").good_rows();
    let (ours, others) = (authority("our own authority"), authority("somebody else"));
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, authority: &Authority| {
        let path = folder.path().join(name);
        std::fs::write(&path, authority.pem()).unwrap();
        path.display().to_string()
    };
    let (ours_file, others_file) = (file("ours.pem", &ours), file("others.pem", &others));
    show(&cluster, &ours, "127.0.0.1");
    wait_for(&cluster, &format!("sslmode=require&sslrootcert={ours_file}"));
    for mode in ["prefer", "require", "verify-ca", "verify-full"] {
        let ran = ask(&cluster, &format!("sslmode={mode}&sslrootcert={ours_file}"));
        assert_eq!(ran.status, 0, "{mode}: {}", ran.stderr);
        for wrong in [format!("sslmode={mode}&sslrootcert={others_file}"), format!("sslmode={mode}")] {
            let ran = ask(&cluster, &wrong);
            assert_eq!(ran.status, 2, "{wrong}: {}", ran.stderr);
            assert_eq!(work(&cluster, &wrong), 4, "no use to try again: {wrong}");
            assert!(
                ran.stderr.contains("certificate") && ran.stderr.contains("sslrootcert=FILE"),
                "{}",
                ran.stderr
            );
        }
    }
    // Whoever must not talk in the open does not; who may, does.
    cluster.sql("COPY (SELECT 'hostssl all all all trust') TO PROGRAM 'cat > pg_hba.conf'");
    cluster.sql("SELECT pg_reload_conf()");
    let began = std::time::Instant::now();
    while ask(&cluster, "sslmode=disable").status == 0 {
        assert!(began.elapsed().as_secs() < 60, "the server still talks in the open");
    }
    assert_eq!(ask(&cluster, &format!("sslmode=verify-full&sslrootcert={ours_file}")).status, 0);
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let cluster = Cluster::start();
    run_command(forager().args(["db", "migrate", "--store", &cluster.url]), "").good_rows();
    let ours = authority("our own authority");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ours.pem").display().to_string();
    std::fs::write(&path, ours.pem()).unwrap();
    let parameters = format!("sslmode=verify-full&sslrootcert={path}");
    show(&cluster, &ours, "127.0.0.1");
    wait_for(&cluster, &parameters);
    show(&cluster, &ours, "db.example");
    let began = std::time::Instant::now();
    while ask(&cluster, &parameters).status == 0 {
        assert!(began.elapsed().as_secs() < 60, "it is still taken for 127.0.0.1");
    }
    let ran = ask(&cluster, &parameters);
    assert_eq!(ran.status, 2, "{ran:?}");
    let told = ran.stderr;
    assert!(told.contains("not valid for name") && told.contains("its address"), "{told}");
    assert!(!told.contains("sslrootcert=FILE"), "the authority is known: {told}");
    assert_eq!(work(&cluster, &parameters), 4, "no use to try again");
}
