# The operators' images, for people with a container engine:
#   docker build --build-arg PROGRAM=hook-operator --tag ghcr.io/hookgate/hook-operator:0.1.0 .
#   docker build --build-arg PROGRAM=gamedeployment-operator --tag ghcr.io/hookgate/gamedeployment-operator:0.1.0 .
#   docker build --build-arg PROGRAM=hookgate-admission --tag ghcr.io/hookgate/admission:0.1.0 .
# `cargo xtask image` makes the same without one.

FROM rust:1.95-bookworm AS build
WORKDIR /source
COPY . .
# One build makes all three, so that the second image costs nothing but its own last layer.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/source/target \
    cargo build --locked --release --bins \
      --package hook-operator --package gamedeployment-operator --package admission \
    && mkdir /programs \
    && cp target/release/hook-operator target/release/gamedeployment-operator target/release/hookgate-admission /programs/

# The C library and the certificates of public authorities; no shell, no package manager.
FROM gcr.io/distroless/cc-debian12:nonroot
ARG PROGRAM
COPY --from=build /programs/${PROGRAM} /bin/program
USER 65532:65532
EXPOSE 8080
ENTRYPOINT ["/bin/program"]
LABEL org.opencontainers.image.source="https://github.com/hookgate/hookgate" \
      org.opencontainers.image.licenses="Apache-2.0"
