// Package lists searches slices of structs without copying their elements.
package lists

// Find returns a pointer to the first element for which match returns true, or nil.
func Find[T any](list []T, match func(*T) bool) *T {
	for i := range list {
		if match(&list[i]) {
			return &list[i]
		}
	}
	return nil
}
