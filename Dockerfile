# syntax=docker/dockerfile:1
# Guideway as a container: the binary, git and ssh to fetch sources with, the
# certificates of public authorities, a user of its own, and /data for what is kept.
# It speaks MCP on standard input and output:
#
#   docker run --rm -i -v guideway:/data ghcr.io/guideway-dev/guideway
#
# or serves a team:
#
#   docker run --rm -p 127.0.0.1:3000:3000 -v guideway:/data \
#     ghcr.io/guideway-dev/guideway serve --listen 0.0.0.0:3000
#
# release/rootfs makes what is added to the base without an engine; its test
# compares it with the lines here.
FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags "-s -w" -o /out/guideway ./cmd/guideway
RUN release/rootfs /out/guideway /etc/ssl/certs/ca-certificates.crt /rootfs

FROM alpine:3.22
RUN apk add --no-cache git openssh-client-default
COPY --from=build --chown=65532:65532 /rootfs/ /
ENV HOME=/data GUIDEWAY_DATA_DIR=/data XDG_CONFIG_HOME=/data/config
USER 65532:65532
WORKDIR /data
VOLUME /data
EXPOSE 3000
ENTRYPOINT ["/guideway"]
CMD ["mcp"]
