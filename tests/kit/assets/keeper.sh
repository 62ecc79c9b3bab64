# Keeper: outlives its owner briefly, so that no other process does.
#
# Commands on stdin, one per line:
#   keep PID      kill this process (and its group) when the owner has ended
#   forget PID    this process has ended
#   hold DIR      remove this directory when the owner has ended; it may be a control group
#   release DIR   this directory has been removed
# The end of stdin means that the owner has ended, for whatever reason: the kernel closes its pipes even on SIGKILL.

# A signal to the owner's group must not stop the keeper before it has finished.
trap '' INT TERM HUP

# Prints the identity of a process. Process ids are reused, but never with the same start time (field 22 of
# /proc/PID/stat).
identity() {
  { IFS= read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
  # shellcheck disable=SC2086 # the line is split into fields
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

# SIGKILL also ends stopped processes. The group is killed, because a process may have children.
for one in $kept; do
  if alive "$one"; then kill -s KILL -- "-${one%:*}" 2>/dev/null || kill -s KILL "${one%:*}" 2>/dev/null; fi
done
for one in $kept; do
  tries=100
  while [ $tries -gt 0 ] && alive "$one"; do sleep 0.05; tries=$((tries - 1)); done
done
# Removes a directory. A control group contains files of the kernel, so only rmdir can remove it: after its last process
# has ended, and after its children.
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
