#!/bin/sh
# Sample game server: serves /status.json on $PORT, and drains for $DRAIN_SECONDS on SIGTERM.
#   game-server              serves
#   game-server say PHASE    sets the phase that status.json contains (for a preStop hook)
#   game-server players N    sets the number of players

state=/state
version=$(cat /version)

tell() {
  echo "$1" >"$state/$2"
  printf '{"version":"%s","phase":"%s","players":%s}\n' \
    "$version" "$(cat $state/phase)" "$(cat $state/players)" >$state/new
  # Replaced atomically, so that a reader sees the old file or the new one, never a part.
  mv $state/new $state/www/status.json
}

case ${1:-serve} in
  say) tell "$2" phase; exit ;;
  players) tell "$2" players; exit ;;
esac

mkdir -p $state/www
echo "${PLAYERS:-0}" >$state/players
tell serving phase
busybox httpd -f -p "${PORT:-9091}" -h $state/www -c /etc/httpd.conf &
server=$!

drain() {
  tell draining phase
  echo "draining for ${DRAIN_SECONDS:-0} s"
  sleep "${DRAIN_SECONDS:-0}"
  kill $server
  echo "drained"
  exit 0
}
trap drain TERM
echo "game server $version serves"
wait $server
