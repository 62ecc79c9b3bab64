# fetch-container-runtime.sh DIRECTORY: installs Debian's containerd, runc, CNI plugins and a static busybox in
# DIRECTORY/bin.

out=$1
work=$out/build
rm -rf "$work"
mkdir -p "$out/bin" "$work/debs"

private_apt "$work/apt"

step "downloading containerd, runc, the CNI plugins and busybox"
(cd "$work/debs" && apt-get "${APT[@]}" download containerd runc containernetworking-plugins busybox-static)

step "unpacking"
for package in "$work"/debs/*.deb; do dpkg-deb -x "$package" "$work/unpacked"; done
for program in bin/busybox sbin/runc bin/containerd bin/containerd-shim-runc-v2 bin/ctr \
  lib/cni/bridge lib/cni/host-local lib/cni/loopback; do
  # Some packages use /bin, others /usr/bin.
  found=$work/unpacked/usr/$program
  [ -e "$found" ] || found=$work/unpacked/$program
  install_program "$found" "$out/bin"
done
rm -rf "$work"
