// Package lists searches and converts slices.
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

// Map returns what convert returns for each element of a list. The result is never nil.
func Map[T, R any](list []T, convert func(T) R) []R {
	out := make([]R, len(list))
	for i, element := range list {
		out[i] = convert(element)
	}
	return out
}

// Filter returns the elements for which keep returns true, in their order; nil if there are
// none.
func Filter[T any](list []T, keep func(T) bool) []T {
	var out []T
	for _, element := range list {
		if keep(element) {
			out = append(out, element)
		}
	}
	return out
}
