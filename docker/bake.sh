#!/usr/bin/env bash
# Fill Node's compile cache by one start and one turn of each profile on a stub model.
#
# For the image build, as the user that will run OpenClaw: Node keeps one compile cache per uid.
set -euo pipefail

programs=$(dirname "$0")
home=$(mktemp -d)
log=$home/log
export HOME=$home OPENCLAW_NO_RESPAWN=1
trap 'status=$?; [[ $status == 0 ]] || cat "$log" >&2; rm -rf "$home" /tmp/jiti /tmp/openclaw*; exit $status' EXIT

config() { # MORE: further members of the configuration
    cat <<END
{
  "models": {"mode": "merge", "providers": {"stub": {
    "baseUrl": "http://127.0.0.1:18999/v1", "apiKey": "none", "api": "openai-completions",
    "models": [{"id": "stub", "name": "stub", "contextWindow": 128000, "maxTokens": 4096}]}}},
  "agents": {"defaults": {
    "model": {"primary": "stub/stub"}, "workspace": "$home/workspace", "heartbeat": {"every": "0m"}}},
  "gateway": {
    "port": 3333, "mode": "local", "bind": "loopback",
    "auth": {"mode": "token", "token": "bake"}, "controlUi": {"enabled": false}}$1
}
END
}

turn() { # CONFIG
    mkdir -p "$home/.openclaw"
    echo "$1" >"$home/.openclaw/openclaw.json"
    echo '{"port":3333,"token":"bake","wait":120,"params":{"message":"go","sessionId":"bake","timeout":120}}' >"$home/job.json"
    node "$programs/entry.mjs" --socket "$home/socket" --port 18999 --seconds 300 -- openclaw gateway run >"$log" 2>&1 &
    local main=$! result
    result=$(node "$programs/turn.mjs" "$home/job.json")
    echo "$result"
    [[ $result == *'"status":"final"'*'"text":"done"'* ]]
    # Node writes its cache at a clean exit.
    kill -TERM "$(pgrep -P "$main")"
    wait "$main" || true
    rm -rf "$home/.openclaw" "$home/workspace"
}

node "$programs/stub.mjs" "$home/socket" &
stub=$!
turn "$(config '')"
turn "$(config ',"plugins": {"enabled": false}, "tools": {"allow": ["read", "write", "edit", "exec", "process"]}')"
kill "$stub"
du -sh "$NODE_COMPILE_CACHE"
