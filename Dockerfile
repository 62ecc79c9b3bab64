# Images of the operators and of the sidecar, built with a container engine:
#   docker build --build-arg PROGRAM=hook-operator --tag ghcr.io/hookgate/hook-operator:0.1.0 .
#   docker build --build-arg PROGRAM=gamedeployment-operator --tag ghcr.io/hookgate/gamedeployment-operator:0.1.0 .
#   docker build --build-arg PROGRAM=hookgate-admission --tag ghcr.io/hookgate/admission:0.1.0 .
#   docker build --target sidecar --tag ghcr.io/hookgate/sidecar:0.1.0 .
# `cargo xtask image` builds images of the same programs without a container engine.

FROM rust:1.95-bookworm AS build
WORKDIR /source
COPY . .
# Builds all three programs at once, so that each further image needs only its own last layer.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    cargo build --locked --release --bins \
      --package hook-operator --package gamedeployment-operator --package admission \
    && mkdir /programs \
    && cp target/release/hook-operator target/release/gamedeployment-operator target/release/hookgate-admission /programs/

FROM rust:1.95-bookworm AS build-sidecar
WORKDIR /source
COPY . .
# Without shared libraries, so that the image contains nothing else. With an explicit target, the flag does not apply to
# build scripts and macros, which cannot be static.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    target=$(rustc -vV | sed -n 's/^host: //p') \
    && RUSTFLAGS='-C target-feature=+crt-static' \
      cargo build --locked --profile sidecar --package sidecar --bin hookgate-sidecar --target "$target" \
    && cp "target/$target/sidecar/hookgate-sidecar" /hookgate-sidecar

FROM scratch AS sidecar
COPY --from=build-sidecar /hookgate-sidecar /bin/hookgate-sidecar
USER 65532:65532
EXPOSE 9357
ENTRYPOINT ["/bin/hookgate-sidecar"]
LABEL org.opencontainers.image.source="https://github.com/hookgate/hookgate" \
      org.opencontainers.image.licenses="Apache-2.0"

# Contains the C library and the certificates of public authorities, but no shell and no package manager.
FROM gcr.io/distroless/cc-debian12:nonroot AS operator
ARG PROGRAM
COPY --from=build /programs/${PROGRAM} /bin/program
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/bin/program"]
LABEL org.opencontainers.image.source="https://github.com/hookgate/hookgate" \
      org.opencontainers.image.licenses="Apache-2.0"
