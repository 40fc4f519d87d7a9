// Package transport carries an mcp.Server over streamable HTTP and over stdio.
//
// The SDK serves both eras of the protocol, but not on one HTTP handler, and
// its line reader ends the session at the first line that is not JSON. This
// package puts the two HTTP handlers behind one URL, and reads and writes lines
// itself. A handler finds who calls in its context, by authn.PrincipalFrom, on
// both ways in.
//
// An mcp.Server that is served here should state its capabilities
// (ServerOptions.Capabilities; the SDK's default claims logging) and set
// ServerOptions.SetCacheable to the scope "private" (the default is "public",
// for answers that differ by user).
package transport

// MaxMessageBytes is the default limit of one message: a line on stdio, a body
// over HTTP.
const MaxMessageBytes = 8 << 20

// ModernVersion is the first protocol version of the modern era: no handshake,
// no session, every request complete in itself.
const ModernVersion = "2026-07-28"
