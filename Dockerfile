# The program alone, linked statically. The agents' CLIs are not in it: take the program into an image that has
# them, with `COPY --from=IMAGE /usr/local/bin/teamster /usr/local/bin/`, or build on this one.
FROM rust:1-alpine AS build
RUN apk add --no-cache musl-dev
WORKDIR /src
COPY . .
RUN cargo build --profile dist --locked --package teamster-cli --all-features

FROM alpine:3
RUN apk add --no-cache ca-certificates && adduser -D agent
COPY --from=build /src/target/dist/teamster /usr/local/bin/teamster
USER agent
WORKDIR /home/agent
ENTRYPOINT ["teamster"]
CMD ["--help"]
