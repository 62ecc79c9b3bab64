# The keeper: outlives its owner by a moment, so that nothing else does.
#
# Orders arrive on stdin, one a line:
#   keep PID      kill this process (and its group) when the owner is gone
#   forget PID    it has ended
#   hold DIR      remove this directory when the owner is gone; it may be a control group
#   release DIR   it has been removed
# The end of stdin means that the owner is gone, however it went: the kernel closes its pipes even on SIGKILL.

# A signal meant for the owner's group must not stop the keeper before its work.
trap '' INT TERM HUP

# Process ids are reused; together with the start time (field 22 of /proc/PID/stat) they are not.
identity() {
  { IFS= read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
  # shellcheck disable=SC2086 # fields are wanted
  set -- ${line##*) }
  [ "$1" != Z ] || return 1
  echo "${20}"
}

kept=
held=
newline='
'

while IFS=' ' read -r order subject; do
  case $order in
    keep) kept="$kept $subject:$(identity "$subject")" ;;
    forget)
      rest=
      for one in $kept; do [ "${one%:*}" = "$subject" ] || rest="$rest $one"; done
      kept=$rest
      ;;
    hold) held="$held$subject$newline" ;;
    release)
      rest=
      while IFS= read -r one; do
        [ -z "$one" ] || [ "$one" = "$subject" ] || rest="$rest$one$newline"
      done <<EOF
$held
EOF
      held=$rest
      ;;
  esac
done

alive() { [ "$(identity "${1%:*}")" = "${1#*:}" ]; }

# SIGKILL, because a process may be stopped; the group, because it may have children.
for one in $kept; do
  if alive "$one"; then kill -s KILL -- "-${one%:*}" 2>/dev/null || kill -s KILL "${one%:*}" 2>/dev/null; fi
done
for one in $kept; do
  tries=100
  while [ $tries -gt 0 ] && alive "$one"; do sleep 0.05; tries=$((tries - 1)); done
done
# A control group is full of the kernel's files and goes once its last process has ended; its children go before it.
remove() {
  if [ ! -e "$1/cgroup.procs" ]; then
    rm -rf -- "$1"
    return
  fi
  tries=200
  while [ -e "$1" ] && [ $tries -gt 0 ]; do
    find "$1" -depth -type d -exec rmdir {} + 2>/dev/null || sleep 0.05
    tries=$((tries - 1))
  done
}
while IFS= read -r one; do
  [ -z "$one" ] || remove "$one"
done <<EOF
$held
EOF
