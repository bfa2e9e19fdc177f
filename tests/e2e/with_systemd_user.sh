#!/bin/bash
# with_systemd_user.sh HOME KEEP COMMAND...
#
# Runs COMMAND as an ordinary user beside that user's own `systemd --user`. The manager is real;
# the machine around it is not: it lives in its own mount, process and cgroup namespaces, with
# empty /run, /tmp, /home and /root, and all of it is killed at the end. HOME is copied to the
# user's home. KEEP is a colon-separated list of directories that stay visible, read-only.
# It needs root to set this up. Exit status: that of COMMAND; 77 if it cannot be done here.
set -euo pipefail

self=$(realpath "$0")
limit_s=240
cannot=77
uid=60321
user_home=/home/tester
runtime=/run/user/$uid

unavailable() {
    echo "$*" >&2
    exit "$cannot"
}

# ------------------------------------------------------------------ on the machine

outside() {
    [ "$(id -u)" = 0 ] || unavailable "needs root, to make namespaces for an ordinary user"
    for program in systemctl unshare setpriv /lib/systemd/systemd; do
        command -v "$program" >/dev/null || unavailable "needs $program"
    done
    local cgroups group status=0
    unshare --mount --pid --cgroup --ipc --fork true 2>/dev/null ||
        unavailable "needs permission to make namespaces (CAP_SYS_ADMIN)"
    cgroups=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
    [ -n "$cgroups" ] || unavailable "needs cgroup v2"
    group=$cgroups/mnemosyned-test-$$
    mkdir "$group" 2>/dev/null || unavailable "needs a cgroup v2 tree it can write to"
    (
        echo "$BASHPID" >"$group/cgroup.procs"
        exec timeout --signal=KILL "$limit_s" unshare --mount --pid --cgroup --ipc \
            --fork --kill-child --mount-proc --propagation private \
            bash "$self" --inside "$@"
    ) || status=$?
    remove "$group"
    exit "$status"
}

remove() {
    for _ in $(seq 50); do
        find "$1" -depth -type d -exec rmdir {} + 2>/dev/null && return
        sleep 0.1
    done
    echo "$1 is still in use" >&2
}

# ------------------------------------------------------- in the namespaces, as root

inside() {
    local home=$1 keep
    IFS=: read -ra keep <<<"$2"
    shift 2
    hide_the_machine "$home" "$(dirname "$self")" "${keep[@]}"
    for directory in "${keep[@]}"; do
        as_user test -r "$directory" -a -x "$directory" ||
            unavailable "needs $directory to be readable for everyone"
    done
    umount --recursive /sys/fs/cgroup
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    mkdir /sys/fs/cgroup/user
    echo $$ >/sys/fs/cgroup/user/cgroup.procs
    chown -R "$uid:$uid" /sys/fs/cgroup/user
    as_user bash "$self" --session "$@"
}

# What COMMAND needs of the machine is held at /run/keep while the rest disappears.
hide_the_machine() {
    local number=0
    mount -t tmpfs -o mode=755 tmpfs /run
    for directory in "$@"; do
        mkdir -p "/run/keep/$number"
        mount --bind "$directory" "/run/keep/$number"
        mount -o remount,bind,ro "/run/keep/$number"
        number=$((number + 1))
    done
    for directory in /home /root; do mount -t tmpfs -o mode=755 tmpfs "$directory"; done
    for directory in /tmp /var/tmp; do mount -t tmpfs -o mode=1777 tmpfs "$directory"; done
    number=1
    for directory in "${@:2}"; do
        mkdir -p "$directory"
        mount --bind "/run/keep/$number" "$directory"
        number=$((number + 1))
    done
    # What the system's own systemd would have made.
    mkdir -p /run/credentials /run/systemd/system /run/systemd/unit-root "$runtime"
    cp -r /run/keep/0 "$user_home"
    chmod 700 "$runtime" "$user_home"
    chown -R "$uid:$uid" "$runtime" "$user_home"
}

as_user() {
    setpriv --reuid "$uid" --regid "$uid" --clear-groups --inh-caps=-all \
        env --ignore-environment --chdir="$user_home" HOME="$user_home" USER=tester \
        XDG_RUNTIME_DIR="$runtime" PATH="$user_home/.local/bin:/usr/bin:/bin" LANG=C.UTF-8 "$@"
}

# ------------------------------------------------------------ as the ordinary user

session() {
    local manager status=0 log=$XDG_RUNTIME_DIR/manager.log
    local target=$HOME/.config/systemd/user/nothing-else.target
    mkdir -p "$(dirname "$target")"
    printf '[Unit]\nDescription=Nothing but what COMMAND starts\nDefaultDependencies=no\n' >"$target"
    SYSTEMD_LOG_TARGET=console /lib/systemd/systemd --user --unit="$(basename "$target")" \
        >"$log" 2>&1 &
    manager=$!
    for _ in $(seq 100); do
        [ -S "$XDG_RUNTIME_DIR/systemd/private" ] && break
        sleep 0.05
    done
    "$@" || status=$?
    kill -TERM "$manager"
    wait "$manager" || true
    [ "$status" = 0 ] || tail -n 30 "$log" >&2
    exit "$status"
}

case ${1:-} in
--inside) shift && inside "$@" ;;
--session) shift && session "$@" ;;
*) outside "$@" ;;
esac
