# fetch-prometheus.sh DIRECTORY: installs Debian's Prometheus and promtool in DIRECTORY/bin.

out=$1
work=$out/build
mkdir -p "$out/bin" "$work/debs"

private_apt "$work/apt"

step "downloading Prometheus"
(cd "$work/debs" && apt-get "${APT[@]}" download prometheus)

step "unpacking"
dpkg-deb -x "$work"/debs/prometheus_*.deb "$work/unpacked"
for program in prometheus promtool; do
    install_program "$work/unpacked/usr/bin/$program" "$out/bin"
done
rm -rf "$work"
