# Functions that are prepended to the build scripts: apt with a separate state, so that neither root nor a change to the
# machine is needed, and progress reports.

set -euo pipefail

# Steps are announced on stdout, where the caller reads them; all other output goes to the log on stderr.
exec 3>&1 1>&2
step() { echo "step: $*" >&3; }

# private_apt DIRECTORY: sets APT, the options of apt-get. The package sources are the machine's own Debian entries,
# with source packages enabled. All other settings of the machine are left out.
private_apt() {
  local state=$1
  mkdir -p "$state"/{lists/partial,cache/archives/partial,sources,preferences}
  : >"$state/sources.list"
  if [ -e /etc/apt/sources.list.d/debian.sources ]; then
    sed 's/^Types:.*/Types: deb deb-src/' /etc/apt/sources.list.d/debian.sources >"$state/sources/debian.sources"
  else
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null |
      sed -nE 's/^deb(-src)?[[:space:]]+(.*[[:space:]]bookworm(-[a-z]+)?[[:space:]].*)$/\2/p' | sort -u |
      while IFS= read -r entry; do printf 'deb %s\ndeb-src %s\n' "$entry" "$entry"; done >"$state/sources.list"
  fi
  APT=(
    -q
    -o "Dir::Etc::sourcelist=$state/sources.list"
    -o "Dir::Etc::sourceparts=$state/sources"
    -o "Dir::Etc::preferencesparts=$state/preferences"
    -o "Dir::State::lists=$state/lists"
    -o "Dir::Cache=$state/cache"
    -o Acquire::Languages=none
    -o "APT::Sandbox::User=$(id -un)"
  )
  step "reading Debian's package lists"
  apt-get "${APT[@]}" update
}

# install_program FILE DIRECTORY: installs a program atomically, so that it is never there in part.
install_program() {
  local target
  target=$2/$(basename "$1")
  cp "$1" "$target.new"
  chmod 755 "$target.new"
  mv "$target.new" "$target"
}

