//! The PostgreSQL installations that the tests run on.

use std::collections::HashMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fmt, fs};

use anyhow::{Context, Result, bail, ensure};
use nix::unistd::{Gid, Uid, User};

/// The majors that the tests know of.
const MAJORS: std::ops::RangeInclusive<u32> = 15..=19;

/// The plugin that is compared with the built-in one: `PGOUTPUT_RS_TEST_PLUGIN`, or `pgoutput_rs`.
///
/// With `pgoutput` the tests compare the built-in plugin with itself, which tests the tests.
pub fn plugin() -> String {
    env::var("PGOUTPUT_RS_TEST_PLUGIN").unwrap_or_else(|_| "pgoutput_rs".to_owned())
}

/// A PostgreSQL installation with the extension installed into it.
#[derive(Debug)]
pub struct Server {
    /// The major version.
    pub major: u32,
    /// The whole version, as in `18.6`.
    pub version: String,
    /// Where the programs are.
    pub bindir: PathBuf,
    /// Where the server looks for libraries: `$libdir`.
    pub pkglibdir: PathBuf,
    /// Whether this minor has the setting `output_plugin_libraries`.
    pub has_plugin_allow_list: bool,
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgreSQL {}", self.version)
    }
}

impl Server {
    /// The servers named in the environment, `PGOUTPUT_RS_PG15` to `PGOUTPUT_RS_PG19`, by version.
    ///
    /// # Errors
    ///
    /// When none is named, or one can't be used. The error says what to do.
    pub fn all_from_env() -> Result<Vec<Server>> {
        let servers = MAJORS
            .filter_map(|major| env::var_os(variable(major)).map(|path| (major, PathBuf::from(path))))
            .map(|(major, path)| Server::named(major, &path))
            .collect::<Result<Vec<_>>>()?;
        ensure!(
            !servers.is_empty(),
            "no server to test on: set PGOUTPUT_RS_PG18 (or …15, …16, …17, …19) to the path of the pg_config of a \
             server into which the extension is installed, or run `make test`, which does"
        );
        Ok(servers)
    }

    /// The server that `PGOUTPUT_RS_PG<major>` names.
    ///
    /// # Errors
    ///
    /// When the variable isn't set, or the server can't be used. The error says what to do.
    pub fn from_env(major: u32) -> Result<Server> {
        let name = variable(major);
        let path = env::var_os(&name).with_context(|| {
            format!(
                "set {name} to the path of the pg_config of a PostgreSQL {major} with the extension installed"
            )
        })?;
        Server::named(major, Path::new(&path))
    }

    fn named(major: u32, pg_config: &Path) -> Result<Server> {
        let variable = variable(major);
        let server = Server::new(pg_config)
            .with_context(|| format!("{variable}={} can't be used", pg_config.display()))?;
        ensure!(
            server.major == major,
            "{variable} names a {server}: set it to the pg_config of a PostgreSQL {major}"
        );
        if plugin() == "pgoutput_rs" {
            server.check_installed()?;
        }
        Ok(server)
    }

    /// The server that a `pg_config` tells of.
    ///
    /// # Errors
    ///
    /// When `pg_config` or the server doesn't run.
    pub fn new(pg_config: &Path) -> Result<Server> {
        let values = pg_config_values(pg_config)?;
        let value = |name: &str| {
            values.get(name).with_context(|| format!("{} doesn't tell {name}", pg_config.display()))
        };
        let version = value("VERSION")?
            .trim_start_matches("PostgreSQL ")
            .split(' ')
            .next()
            .unwrap_or_default()
            .to_owned();
        let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
        let major = digits.parse().with_context(|| format!("not a version: {version}"))?;
        let mut server = Server {
            major,
            version,
            bindir: value("BINDIR")?.into(),
            pkglibdir: value("PKGLIBDIR")?.into(),
            has_plugin_allow_list: false,
        };
        let mut describe = server.program("postgres");
        describe.arg("--describe-config");
        run_as_server_user(&mut describe)?;
        let settings = output(&mut describe).with_context(|| match server_user() {
            Ok(Some(user)) => format!(
                "the servers run as the user {}, who must be able to read {}",
                user.name,
                server.bindir.display()
            ),
            _ => "the server doesn't run".to_owned(),
        })?;
        server.has_plugin_allow_list =
            settings.lines().any(|line| line.split('\t').next() == Some("output_plugin_libraries"));
        Ok(server)
    }

    /// A program of this installation.
    pub fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.bindir.join(name));
        command.env_clear();
        for kept in ["PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "TZDIR"] {
            if let Some(value) = env::var_os(kept) {
                command.env(kept, value);
            }
        }
        command
    }

    /// The library that slots made with plugin `pgoutput_rs` load.
    pub fn library(&self) -> PathBuf {
        self.pkglibdir.join("pgoutput_rs.so")
    }

    /// The directory that puts the extension in the place of `pgoutput`, before `$libdir` in
    /// `dynamic_library_path`.
    pub fn in_place_directory(&self) -> PathBuf {
        self.pkglibdir.join("pgoutput_rs")
    }

    /// The value of `dynamic_library_path` that puts the extension in the place of `pgoutput`.
    pub fn in_place_path(&self) -> String {
        format!("{}:$libdir", self.in_place_directory().display())
    }

    fn check_installed(&self) -> Result<()> {
        for library in [self.library(), self.in_place_directory().join("pgoutput.so")] {
            if fs::metadata(&library).is_err() {
                bail!(
                    "the extension isn't installed into {self} ({} is missing): run `make install PG_CONFIG={}`",
                    library.display(),
                    self.bindir.join("pg_config").display()
                );
            }
        }
        Ok(())
    }
}

fn variable(major: u32) -> String {
    format!("PGOUTPUT_RS_PG{major}")
}

fn pg_config_values(pg_config: &Path) -> Result<HashMap<String, String>> {
    let text = output(&mut Command::new(pg_config))?;
    Ok(text
        .lines()
        .filter_map(|line| line.split_once(" = "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect())
}

/// Runs a program to its end.
///
/// # Errors
///
/// When it can't be run or fails, with what it said.
pub fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_owned();
    let program = program.display();
    let output = command.output().with_context(|| format!("can't run {program}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} failed ({}):\n{stderr}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The user that servers run as when the tests run as root, whom PostgreSQL refuses: `postgres`, or `nobody`.
///
/// # Errors
///
/// When the users can't be looked up, or root has neither.
pub fn server_user() -> Result<Option<User>> {
    if !Uid::effective().is_root() {
        return Ok(None);
    }
    for name in ["postgres", "nobody"] {
        if let Some(user) = User::from_name(name).context("can't look users up")? {
            return Ok(Some(user));
        }
    }
    bail!("PostgreSQL doesn't run as root: create a user `postgres`, or run the tests as an ordinary user")
}

/// Makes a program run as [`server_user`].
///
/// # Errors
///
/// As [`server_user`].
pub fn run_as_server_user(command: &mut Command) -> Result<()> {
    if let Some(User { uid, gid, .. }) = server_user()? {
        command.uid(Uid::as_raw(uid)).gid(Gid::as_raw(gid)).current_dir("/");
    }
    Ok(())
}
