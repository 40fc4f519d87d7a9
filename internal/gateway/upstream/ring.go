package upstream

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// ringBytes is the maximum size of the kept lines.
const ringBytes = 64 << 10

// Ring keeps the last lines of a server's stderr, and forwards each line. Its zero value is
// ready to use; it is safe for concurrent use.
type Ring struct {
	// Line, if set, is called with each line, in the writing goroutine.
	Line func(line string)

	mu   sync.Mutex
	kept []byte
	part []byte
}

var _ io.Writer = (*Ring)(nil)

// Write implements io.Writer. It never fails.
func (r *Ring) Write(text []byte) (int, error) {
	r.mu.Lock()
	r.part = append(r.part, text...)
	var lines []string
	for {
		n := bytes.IndexByte(r.part, '\n')
		if n < 0 && len(r.part) > ringBytes/4 {
			n = len(r.part) - 1 // an overlong line is cut
		}
		if n < 0 {
			break
		}
		line := plainText(string(bytes.TrimRight(r.part[:n+1], "\r\n")))
		lines = append(lines, line)
		r.part = r.part[n+1:]
		r.kept = append(append(r.kept, line...), '\n')
	}
	if over := len(r.kept) - ringBytes; over > 0 {
		if n := bytes.IndexByte(r.kept[over:], '\n'); n >= 0 {
			over += n + 1
		}
		r.kept = append([]byte(nil), r.kept[over:]...)
	}
	r.mu.Unlock()
	if r.Line != nil {
		for _, line := range lines {
			r.Line(line)
		}
	}
	return len(text), nil
}

// Last returns the last lines, at most n.
func (r *Ring) Last(n int) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := strings.Split(strings.TrimSuffix(string(r.kept), "\n"), "\n")
	if len(lines) == 1 && lines[0] == "" {
		return nil
	}
	return lines[max(0, len(lines)-n):]
}

// plainText removes control characters other than tabs, and replaces invalid UTF-8.
func plainText(line string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\t' || c == 0x7f || c >= 0x80 && c < 0xa0 {
			return -1
		}
		return c
	}, strings.ToValidUTF8(line, "?"))
}
