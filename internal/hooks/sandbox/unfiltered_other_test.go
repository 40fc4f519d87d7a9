//go:build !linux

package sandbox_test

// withoutFilters does nothing: there are no filters on this system.
func withoutFilters() {}
