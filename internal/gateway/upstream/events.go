package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
)

// event is one server-sent event.
type event struct {
	name, id string
	data     []byte
}

// events parses server-sent events. retry and last are the delay and the last event id with
// which the stream is resumed.
type events struct {
	in    *bufio.Reader
	limit int
	retry time.Duration
	last  string
}

func newEvents(r io.Reader, limit int) *events {
	return &events{in: bufio.NewReaderSize(r, 32<<10), limit: limit}
}

// next returns the next event with data; io.EOF is the end of the stream.
func (e *events) next() (event, error) {
	var out event
	hasData := false
	for {
		l, err := readLine(e.in, e.limit, false)
		if l.tooLong || len(out.data)+len(l.begin) > e.limit {
			return event{}, errTooLarge(e.limit)
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
			hasData = e.addField(&out, text) || hasData
		}
		if err != nil {
			return event{}, err // an unfinished event is dropped
		}
	}
}

// addField parses one line of an event and reports whether it has data.
func (e *events) addField(out *event, text []byte) bool {
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

// maxRetry limits the delay that a server may request before its stream is resumed.
const maxRetry = 30 * time.Second
