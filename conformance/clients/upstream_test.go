//go:build unix

package clients

// upstreamVariable makes the test program a server of MCP with this name.
const upstreamVariable = "GUIDEWAY_TEST_UPSTREAM"

func serveUpstream(name string) {}
