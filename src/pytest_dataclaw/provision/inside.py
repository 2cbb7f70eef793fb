"""Scripts that run in a container, for `bash -c`.

Each is given a mark as $1 and ends its output with `MARK:N;`, N being its exit code: see `container_script`.
"""

from __future__ import annotations

AWAIT_PORT = r"""
until (exec 3<>"/dev/tcp/127.0.0.1/{port}") 2>/dev/null; do sleep 0.02; done
"""
"""Put before another script: wait until something listens on `port`, to be formatted in."""

RUN = r"""
exec 2>&1
cd -- "$2" || { printf '%s:126;' "$1"; exit; }
trap : TERM INT HUP
command=$(cat)
exec 2>/dev/null
bash <(printf '%s\n' "$command") </dev/null 2>&1
printf '%s:%d;' "$1" "$?"
"""
"""Run the command on standard input, of any length, in folder $2.

A signal that may be handled ends the command, not the script that tells of it.
"""

SIGNAL = r"""
end=$1 signal=$2 mark=$3
shift 3
groups=("$@")
scan() {
    local folder entry stat fields
    found=()
    for folder in /proc/[0-9]*; do
        while IFS= read -r -d '' entry; do
            [[ $entry == "$mark" ]] || continue
            found+=("${folder#/proc/}")
            read -r stat <"$folder/stat" && fields=(${stat##*) }) && groups+=("${fields[2]}")
            break
        done <"$folder/environ"
    done
} 2>/dev/null
send() {
    local target
    for target in "${groups[@]/#/-}" "${found[@]}"; do kill "-$signal" -- "$target"; done
} 2>/dev/null
scan
send
if [[ $signal == KILL ]]; then while ((${#found[@]})); do scan; send; done; fi
printf '%s %s:0;' "${groups[*]}" "$end"
"""
"""Send signal $2 to all processes that were started with $3 (`NAME=value`) in their environment, and to their groups.

Further arguments are groups to send it to as well; prints the groups. KILL goes on until no such process is left.
Bash's own commands only: where a command has used up all processes, nothing could be forked.
"""

WRITE = r"""
umask 077
mkdir -p -- "${2%/*}" && rm -f -- "$2" && cat >"$2"
printf '%s:%d;' "$1" "$?"
"""
"""Write standard input to file $2, in place of what is there."""

READ = r"""
[[ -f $2 && ! -L $2 ]] && head --bytes="$3" -- "$2"
printf '%s:%d;' "$1" "$?"
"""
"""Print the first $3 bytes of a regular file $2; fail where it is none."""

NOTHING = r"""
printf '%s:0;' "$1"
"""
