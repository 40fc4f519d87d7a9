package auth

import (
	"os"
	"testing"

	"github.com/guideway-dev/guideway"
)

// A record that cannot be encoded is an error and leaves no file: an empty record would be
// read as a credential without limits.
func TestUnencodableRecordIsNotStored(t *testing.T) {
	t.Parallel()
	v := newTokenStore(t.TempDir(), nil, nil)
	if err := v.createRecord("secret", func() {}); guideway.ErrorCode(err) != guideway.CodeInternal {
		t.Errorf("create a record that is not JSON: %v", err)
	}
	if list, err := os.ReadDir(v.dir); err != nil || len(list) != 0 {
		t.Errorf("the directory has %v, %v", list, err)
	}
}
