# The image for tests and for your own machine: a server in emulator mode.
#
#   docker build --tag dayfly .
#   docker run --rm --publish 127.0.0.1:8081:8081 dayfly
#
# Whoever reaches its ports can do everything: docs/ci.md.

FROM rust:1-slim-trixie AS build
WORKDIR /dayfly
COPY . .
RUN cargo build --release --locked --package dayfly

FROM debian:trixie-slim
# Tools copy the certificate from this folder of the emulator.
ARG EMULATOR=/tmp/cosmos/appdata/.system/profiles/Client/AppData/Local/CosmosDBEmulator
RUN useradd --uid 10001 --create-home dayfly \
    && mkdir --parents /data "$EMULATOR" \
    && chown dayfly:dayfly /data "$EMULATOR"
COPY --from=build /dayfly/target/release/dayfly /usr/local/bin/dayfly
USER dayfly
# The folder is given by the emulators' name for it: any setting of a user's wins over that,
# --memory too.
ENV DAYFLY_EMULATOR=1 \
    DATA_PATH=/data \
    DAYFLY_TLS_EXPORT=$EMULATOR/emulator.pem
VOLUME /data
EXPOSE 8081 8080 8903
# The port for health stays where it is when PORT moves the main one.
HEALTHCHECK --interval=2s --timeout=3s --start-period=60s \
    CMD ["dayfly", "healthcheck", "--endpoint", "http://127.0.0.1:8080"]
ENTRYPOINT ["dayfly"]
