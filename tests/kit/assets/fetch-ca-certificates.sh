# fetch-ca-certificates.sh DIRECTORY: writes the certificates of Debian's package into one file in DIRECTORY/bin.

out=$1
work=$out/build
rm -rf "$work"
mkdir -p "$out/bin" "$work/debs"

private_apt "$work/apt"

step "downloading ca-certificates"
(cd "$work/debs" && apt-get "${APT[@]}" download ca-certificates)

step "unpacking"
dpkg-deb -x "$work"/debs/ca-certificates_*.deb "$work/unpacked"
cat "$work"/unpacked/usr/share/ca-certificates/mozilla/*.crt >"$work/ca-certificates.crt"
install_program "$work/ca-certificates.crt" "$out/bin"
rm -rf "$work"
