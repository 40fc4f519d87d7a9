//go:build !linux

package footprint

// releaseProgram does nothing: other systems have no way to ask for it.
func releaseProgram() {}
