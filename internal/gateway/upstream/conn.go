package upstream

import (
	"bytes"
	"context"
	"regexp"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
)

// conn carries messages to one server. What comes back goes to the receiver
// that it was made with.
type conn interface {
	// send sends a message. Over HTTP the answer to a call comes on its own
	// way, and send returns when that way has ended; else it returns at once.
	send(ctx context.Context, m outgoing) error
	// negotiated tells what the server has agreed to. It is called once, before
	// anything but the handshake is sent.
	negotiated(version string)
	// close ends the connection and what belongs to it. It may be called twice.
	close()
}

// outgoing is a message to a server.
type outgoing struct {
	text []byte
	// call is the id of a call, "" for a notification or a response.
	call string
	// method and name are for the headers that HTTP has since 2026-07-28.
	method, name string
	headers      map[string]string
	// trace are headers that go along in both eras.
	trace map[string]string
}

// receiver takes what a server sends.
type receiver interface {
	// receive takes a message; call is the id of the call on whose way it came,
	// "" where that is not known.
	receive(m *jsonrpc.Message, call string)
	// unreadable takes the id of a call whose answer cannot be read, "" where it
	// is not known which one it is.
	unreadable(call string, err error)
	// ended is called once, when nothing more will come.
	ended(err error)
}

// deliver hands on the message in text.
func deliver(to receiver, text []byte, call string) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return
	}
	m, err := jsonrpc.Parse(text)
	if err != nil {
		if call == "" {
			call = guessID(text, text)
		}
		to.unreadable(call, err)
		return
	}
	to.receive(m, call)
}

// The places where an id stands in what servers write: near the beginning, or
// at the very end.
var (
	idAtBegin = regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*[,}]`)
	noAnswer  = regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"method"\s*:`)
	idAtEnd   = regexp.MustCompile(`"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)
)

// tells says of a message that cannot be read, by its beginning, that it answers
// nothing: no call has lost its answer with it.
func tells(begin []byte) bool { return noAnswer.Match(begin) }

// guessID finds which call an answer is for that cannot be read, from its
// beginning and its end. A wrong guess fails another call to the same server,
// which the server could do anyway.
func guessID(begin, end []byte) string {
	const enough = 256
	if found := idAtBegin.FindSubmatch(begin[:min(len(begin), enough)]); found != nil {
		return string(found[1])
	}
	if found := idAtEnd.FindSubmatch(end[max(0, len(end)-enough):]); found != nil {
		return string(found[1])
	}
	return ""
}
