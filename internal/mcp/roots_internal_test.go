package mcp

import (
	"strings"
	"testing"
)

// A root is a local directory, named by a file URI; everything else is ignored.
func TestRootDir(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ uri, system, want string }{
		{"file:///work/app", "linux", "/work/app"},
		{"file:///work/my%20app/", "linux", "/work/my app"},
		{"file://localhost/work", "linux", "/work"},
		{"file:///work/../etc", "linux", "/etc"},
		{"file://server/share", "linux", ""},
		{"file:relative", "linux", ""},
		{"https://example.com/work", "linux", ""},
		{"/work", "linux", ""},
		{"", "linux", ""},
		{"file:///work%00/x", "linux", ""},
		{"file:///" + strings.Repeat("x", 5000), "linux", ""},
		{"file:///work", "windows", ""},
		{"file:////server/share", "windows", ""},
		{"file://server/share", "windows", ""},
	} {
		if got := rootDir(tt.uri, tt.system); got != tt.want {
			t.Errorf("%s on %s: %q, want %q", tt.uri, tt.system, got, tt.want)
		}
	}
}
