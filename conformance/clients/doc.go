// Package clients tests the programs of MCP clients, pinned in package.json, with
// Guideway. Each program works without a terminal for a scripted model, a server on
// loopback that sends the calls of a script and records what the program passes to it.
package clients
