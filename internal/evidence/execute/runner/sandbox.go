package runner

import "errors"

// ErrNetwork is returned if files can be protected, but the network cannot be blocked.
var ErrNetwork = errors.New("the network cannot be blocked")

// Sandbox limits what a command can do. A sandboxed command can read everything.
type Sandbox struct {
	// Writable are the directories and files that the command can write.
	Writable []string
	// Network allows the network.
	Network bool
	// Isolated is set by Run if the command has its own network, with a loopback interface
	// only. Otherwise a sandbox without network refuses TCP only.
	Isolated bool
}
