//go:build !linux

package script_test

// withoutFilters has nothing to do: there are none.
func withoutFilters() {}
