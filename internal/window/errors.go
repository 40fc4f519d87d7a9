package window

import "github.com/guideway-dev/guideway"

// invalid is an error that the caller can mend.
func invalid(format string, args ...any) *guideway.Error {
	return guideway.Errorf(guideway.CodeInvalid, format, args...)
}
