# What the scripts share. Sourced, never run.
# shellcheck shell=bash

readonly MAJORS="15 16 17 18 19"
readonly RUST_NEEDED="1.96"
# shellcheck disable=SC2034 # setup uses it
readonly PGRX_VERSION="0.19.4"

say() { printf '%s\n' "$*"; }
fail() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# Root's cache must be readable to the unprivileged user that its servers run as, so it cannot be in root's home.
cache_dir() {
    if [ -n "${PGOUTPUT_RS_CACHE:-}" ]; then
        case "$PGOUTPUT_RS_CACHE" in
        /*) printf '%s\n' "$PGOUTPUT_RS_CACHE" ;;
        *) printf '%s/%s\n' "$PWD" "$PGOUTPUT_RS_CACHE" ;;
        esac
    elif [ "$(id -u)" = 0 ]; then
        printf '/var/cache/pgoutput_rs\n'
    else
        printf '%s/pgoutput_rs\n' "${XDG_CACHE_HOME:-${HOME:?HOME is not set: set PGOUTPUT_RS_CACHE to a directory}/.cache}"
    fi
}

# version_at_least HAVE WANT
version_at_least() {
    [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

# The major version of the server that a pg_config belongs to; fails in one sentence where it isn't one to build for.
server_major() {
    local pg_config=$1 version major
    [ -n "$pg_config" ] || fail "PG_CONFIG is empty: give the path of your server's pg_config, as in PG_CONFIG=/usr/lib/postgresql/18/bin/pg_config."
    if [ -d "$pg_config" ] || ! command -v "$pg_config" >/dev/null 2>&1; then
        fail "there is no program $pg_config: give the path of your server's pg_config in PG_CONFIG."
    fi
    version=$("$pg_config" --version 2>/dev/null) || version=
    case "$version" in
    "PostgreSQL "*) ;;
    *) fail "$pg_config does not answer like a pg_config: give the path of your server's pg_config in PG_CONFIG." ;;
    esac
    major=${version#PostgreSQL }
    major=${major%%[!0-9]*}
    case " $MAJORS " in
    *" $major "*) ;;
    *) fail "$pg_config belongs to $version, but pgoutput_rs is for PostgreSQL 15 to 19: give the pg_config of one of those in PG_CONFIG." ;;
    esac
    printf '%s\n' "$major"
}

# A pg_config from a client package answers for a server whose headers, or whose programs, aren't there.
check_server() {
    local pg_config=$1 major=$2
    if [ ! -f "$("$pg_config" --includedir-server)/postgres.h" ]; then
        fail "$pg_config names a PostgreSQL $major without server headers: install them (Debian: apt-get install postgresql-server-dev-$major) or give another pg_config in PG_CONFIG."
    fi
    if [ ! -x "$("$pg_config" --bindir)/postgres" ]; then
        fail "$pg_config names a PostgreSQL $major without a server in $("$pg_config" --bindir): install it (Debian: apt-get install postgresql-$major) or give another pg_config in PG_CONFIG."
    fi
}

# The environment that scripts/setup made.
use_toolchain() {
    local env
    env=$(cache_dir)/env
    [ -f "$env" ] || fail "$env is not there: run make setup first."
    # shellcheck disable=SC1090
    . "$env"
    rust_is_new_enough || fail "Rust $RUST_NEEDED or newer is needed, and cargo here is $(cargo --version 2>/dev/null || echo missing): run make setup."
}

# The pg_config of the cache's server of a major version; after use_toolchain.
cached_server() {
    local pg_config=PGOUTPUT_RS_PG$1
    [ -n "${!pg_config:-}" ] || fail "there is no PostgreSQL $1 in the cache: run PG_MAJORS=$1 make setup."
    printf '%s\n' "${!pg_config}"
}

rust_is_new_enough() {
    local program have
    for program in cargo rustc; do
        have=$("$program" --version 2>/dev/null | awk '{ print $2 }') || return 1
        [ -n "$have" ] && version_at_least "$have" "$RUST_NEEDED" || return 1
    done
}

# Whom root's servers run as.
server_user() {
    if id postgres >/dev/null 2>&1; then say postgres; else say nobody; fi
}
