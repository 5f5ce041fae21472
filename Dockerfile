# syntax=docker/dockerfile:1

# The CPU image:  docker build -t pdr-audit .
# The CUDA image: docker build -t pdr-audit:cuda --build-arg VARIANT=cuda --build-arg CUDA_COMPUTE_CAP=90 .
ARG VARIANT=cpu
ARG CUDA=12.8.1

FROM rust:1.95-bookworm AS rust

FROM rust AS build-cpu
ENV FEATURES=""

# The kernels are compiled ahead for one generation of GPUs, for there is none to ask while an image is built: 80 for A100,
# 86 for A10, 89 for L4 and L40, 90 for H100 and H200.
FROM nvidia/cuda:${CUDA}-devel-ubuntu22.04 AS build-cuda
ARG CUDA_COMPUTE_CAP=80
ENV FEATURES="cuda" \
    CUDA_COMPUTE_CAP=${CUDA_COMPUTE_CAP} \
    CARGO_HOME=/usr/local/cargo \
    RUSTUP_HOME=/usr/local/rustup \
    PATH=/usr/local/cargo/bin:${PATH}
COPY --from=rust /usr/local/cargo /usr/local/cargo
COPY --from=rust /usr/local/rustup /usr/local/rustup

FROM build-${VARIANT} AS build
ARG VARIANT
# Writes the list of crates and their versions into the program, which scanners of vulnerabilities read.
RUN cargo install --locked cargo-auditable@0.7.7
WORKDIR /src
COPY . .
RUN --mount=type=cache,id=pdr-audit-registry,target=/usr/local/cargo/registry \
    --mount=type=cache,id=pdr-audit-target-${VARIANT},target=/src/target \
    cargo auditable build --release --locked --bin pdr-audit --features "${FEATURES}" && \
    install -D target/release/pdr-audit /out/pdr-audit

FROM debian:bookworm-slim AS runtime-cpu
FROM nvidia/cuda:${CUDA}-runtime-ubuntu22.04 AS runtime-cuda

FROM runtime-${VARIANT}
LABEL org.opencontainers.image.title="pdr-audit" \
      org.opencontainers.image.description="Tells over HTTP whether a text was in a language model's pre-training data" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /out/pdr-audit /usr/local/bin/pdr-audit
COPY LICENSE /usr/share/doc/pdr-audit/LICENSE
# Where repositories of the Hub are kept, and a store in a file; mount volumes there to keep them.
RUN install -d -o 10001 -g 10001 /var/cache/pdr-audit /var/lib/pdr-audit
# Numeric, so that Kubernetes can tell that it is not root.
USER 10001:10001
ENV PDR_AUDIT__SERVER__HOST=0.0.0.0 \
    HF_HOME=/var/cache/pdr-audit \
    CUDA_CACHE_PATH=/var/cache/pdr-audit/cuda
EXPOSE 8080
# bash opens the connection itself, so the image needs no HTTP client.
HEALTHCHECK --interval=15s --timeout=5s --start-period=5m CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/${PDR_AUDIT__SERVER__PORT:-8080} && printf 'GET /readyz HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n' >&3 && read -r line <&3 && [[ $line == *' 200 '* ]]"]
ENTRYPOINT ["pdr-audit"]
CMD ["serve"]
