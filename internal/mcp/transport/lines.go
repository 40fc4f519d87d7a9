package transport

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// inputLine is one line of input without its end.
type inputLine struct {
	text []byte
	// tooLong reports that text is only the start of the line.
	tooLong bool
}

// byteOrderMark precedes the first line of some shells.
var byteOrderMark = []byte("\xef\xbb\xbf")

// readLines sends the lines of r until r ends or stop is closed. It omits blank lines, and
// returns the read error, or nil for io.EOF.
func readLines(r io.Reader, limit int, lines chan<- inputLine, stop <-chan struct{}) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for first := true; ; first = false {
		l, err := readLine(in, limit)
		if first {
			l.text = bytes.TrimPrefix(l.text, byteOrderMark)
		}
		l.text = bytes.TrimSpace(l.text)
		if len(l.text) > 0 {
			select {
			case lines <- l:
			case <-stop:
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a line: %w", err)
		}
	}
}

// readLine reads up to the end of a line and keeps at most limit bytes of it.
func readLine(in *bufio.Reader, limit int) (inputLine, error) {
	var l inputLine
	for {
		part, err := in.ReadSlice('\n')
		part = bytes.TrimSuffix(part, []byte("\n"))
		if room := limit - len(l.text); len(part) > room {
			l.tooLong = true
			part = part[:room]
		}
		l.text = append(l.text, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l, err
		}
	}
}

// recoverID finds the id of a request in invalid or incomplete text, so that the client
// learns which call failed. It returns nil if there is no valid id.
func recoverID(text []byte) json.RawMessage {
	const enough = 64 << 10 // an id is near the start, or not worth searching for
	dec := json.NewDecoder(bytes.NewReader(text[:min(len(text), enough)]))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil
		}
		if key != "id" {
			continue
		}
		if c := value[0]; (c == '"' && utf8.Valid(value)) || c == '-' || (c >= '0' && c <= '9') {
			return value
		}
		return nil
	}
	return nil
}
