// Package transport carries an mcp.Server over streamable HTTP and over stdio.
//
// The SDK serves legacy and modern protocol versions, but not on one HTTP handler, and its
// line reader ends the session at the first line that is not JSON. This package serves the
// two HTTP handlers on one URL, and reads and writes lines. A handler gets the caller from
// its context, by auth.PrincipalFrom, on both transports.
//
// An mcp.Server that is served here should set ServerOptions.Capabilities, because the
// SDK's default claims logging. It should set ServerOptions.SetCacheable to the scope
// "private", because the default is "public" and the answers differ by user.
package transport

// MaxMessageBytes is the default limit of one message: a line on stdio, a body
// over HTTP.
const MaxMessageBytes = 8 << 20

// ModernVersion is the first modern protocol version: no handshake, no session, and every
// request is complete.
const ModernVersion = "2026-07-28"
