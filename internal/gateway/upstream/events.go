package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// event is one server-sent event.
type event struct {
	name, id string
	data     []byte
}

// events reads server-sent events. retry and last are what the stream said of
// how it is taken up again.
type events struct {
	in    *bufio.Reader
	limit int
	retry time.Duration
	last  string
}

func newEvents(r io.Reader, limit int) *events {
	return &events{in: bufio.NewReaderSize(r, 32<<10), limit: limit}
}

// next gives the next event that has data; io.EOF is the end of the stream.
func (e *events) next() (event, error) {
	var out event
	hasData := false
	for {
		l, err := readLine(e.in, e.limit, false)
		if l.tooLong || len(out.data)+len(l.begin) > e.limit {
			return event{}, fmt.Errorf("an event is larger than %d bytes", e.limit)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return event{}, err
		}
		text := bytes.TrimRight(l.begin, "\r\n")
		if len(text) == 0 {
			if hasData {
				return out, nil
			}
			out = event{}
		} else {
			hasData = e.field(&out, text) || hasData
		}
		if err != nil {
			return event{}, err // an event that was not finished is none
		}
	}
}

// field takes one line of an event and tells whether it is data.
func (e *events) field(out *event, text []byte) bool {
	name, value, _ := bytes.Cut(text, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		if out.data != nil {
			out.data = append(out.data, '\n')
		}
		out.data = append(out.data, value...)
		return true
	case "event":
		out.name = string(value)
	case "id":
		if bytes.IndexByte(value, 0) < 0 && len(value) <= 1<<10 {
			out.id = string(value)
			e.last = out.id
		}
	case "retry":
		if ms, err := strconv.Atoi(string(value)); err == nil && ms >= 0 {
			e.retry = min(time.Duration(ms)*time.Millisecond, maxRetry)
		}
	}
	return false
}

// maxRetry bounds how long a server may have us wait before a stream is taken up
// again.
const maxRetry = 30 * time.Second
