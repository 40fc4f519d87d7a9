package auth

import (
	"errors"
	"os/user"
	"testing"

	"github.com/guideway-dev/guideway"
)

// TestSystemUserWithoutName checks that the name contains the user id if the operating
// system has no user name, and that a missing user id is an error.
func TestSystemUserWithoutName(t *testing.T) {
	t.Parallel()
	unknown := errors.New("user: Current requires cgo or $USER set in environment")
	for _, tt := range []struct {
		user *user.User
		err  error
		uid  int
		want string
	}{
		{&user.User{Username: "ann"}, nil, 1000, "ann"},
		{nil, unknown, 12345, "uid-12345"},
		{&user.User{}, nil, 0, "uid-0"},
	} {
		if got, err := systemUserName(tt.user, tt.err, tt.uid); err != nil || got != tt.want {
			t.Errorf("%q, %v, want %q", got, err, tt.want)
		}
	}
	if _, err := systemUserName(nil, unknown, -1); guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
		t.Errorf("without a name and a number: %v", err)
	}
}
