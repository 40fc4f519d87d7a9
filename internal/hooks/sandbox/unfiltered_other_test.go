//go:build !linux

package sandbox_test

// withoutFilters has nothing to do: there are none.
func withoutFilters() {}
