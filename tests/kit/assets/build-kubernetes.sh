# build-kubernetes.sh DIRECTORY PROGRAM...
# Installs etcd (from Debian's package) and the named Kubernetes programs (built from Debian's source package) in
# DIRECTORY/bin. Downloads about 150 MB, and uses 3 GB in DIRECTORY/build, which is removed afterwards.

out=$1
shift
work=$out/build
src=$work/gopath/src/k8s.io/kubernetes
mkdir -p "$out/bin" "$work/debs" "$work/unpacked" "$work/gopath"

private_apt "$work/apt"

step "downloading etcd, the Go compiler and the Kubernetes source package"
(cd "$work/debs" &&
  apt-get "${APT[@]}" download etcd-server golang-1.19-go golang-1.19-src golang-github-modern-go-reflect2-dev)
(cd "$work" && apt-get "${APT[@]}" --download-only source kubernetes)

step "unpacking"
for package in "$work"/debs/*.deb; do dpkg-deb -x "$package" "$work/unpacked"; done
install_program "$work/unpacked/usr/bin/etcd" "$out/bin"
[ $# -gt 0 ] || { rm -rf "$work"; exit 0; }

rm -rf "$src"
mkdir -p "$src"
cd "$src"
tar -xzf "$work"/kubernetes_*.orig.tar.gz --strip-components=1
tar -xJf "$work"/kubernetes_*.debian.tar.xz
while read -r patch; do
  case $patch in '' | '#'*) continue ;; esac
  patch -s -p1 <"debian/patches/$patch"
done <debian/patches/series

# Replaces the vendored reflect2 1.0.1 by Debian's 1.0.2. Built with Go 1.18 or newer, 1.0.1 dereferences a null
# pointer: the server starts, and panics on the first CustomResourceDefinition.
rm -rf vendor/github.com/modern-go/reflect2
cp -r "$work/unpacked/usr/share/gocode/src/github.com/modern-go/reflect2" vendor/github.com/modern-go/

export GOROOT=$work/unpacked/usr/lib/go-1.19 GOPATH=$work/gopath GOCACHE=$work/go-cache
export PATH=$GOROOT/bin:$PATH GO111MODULE=off CGO_ENABLED=0 GOFLAGS=-trimpath

# Generates the OpenAPI definitions of the API, the only generated file that the source package lacks.
step "generating the OpenAPI definitions"
go build -o "$work/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
marked=$(grep -rlE --include='*.go' '^// *\+k8s:openapi-gen=' pkg plugin cmd staging/src/k8s.io |
  grep -vE '/testdata/|_test\.go$|^staging/src/k8s\.io/(code-generator|sample-[a-z]+)/')
packages=$(echo "$marked" | xargs -n1 dirname | sort -u |
  sed -E -e 's#^staging/src/#k8s.io/kubernetes/vendor/#' -e 't' -e 's#^#k8s.io/kubernetes/#' | paste -sd,)
"$work/openapi-gen" --logtostderr \
  --input-dirs "$packages" \
  --output-package k8s.io/kubernetes/pkg/generated/openapi \
  --output-file-base zz_generated.openapi \
  --go-header-file vendor/k8s.io/code-generator/hack/boilerplate.go.txt \
  --report-filename "$work/openapi.report"

flags="-s -w"
for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
  for value in gitVersion=v1.20.2 gitMajor=1 gitMinor=20 gitTreeState=archive; do
    flags="$flags -X k8s.io/kubernetes/vendor/$package.$value"
  done
done
for program in "$@"; do
  step "building $program"
  go build -ldflags "$flags" -o "$work/$program" "./cmd/$program"
  install_program "$work/$program" "$out/bin"
done

cd /
rm -rf "$work"
