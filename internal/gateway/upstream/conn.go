package upstream

import (
	"bytes"
	"context"
	"regexp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
)

// conn is a connection to one server. The receiver of its incoming messages is set when it
// is created.
type conn interface {
	// send sends a message. Over HTTP it returns when the response to the POST has ended;
	// over streamable HTTP that response contains the answer to a call. On stdio it returns
	// when the message is written.
	send(ctx context.Context, m outgoing) error
	// negotiated sets the negotiated protocol version. It is called once, right after the
	// handshake.
	negotiated(version string)
	// close closes the connection and releases its resources. It may be called twice.
	close()
}

// outgoing is a message to a server.
type outgoing struct {
	text []byte
	// call is the id of a call, "" for a notification or a response.
	call string
	// method and name become headers, which HTTP requires since 2026-07-28.
	method, name string
	headers      map[string]string
	// trace holds the tracing headers. Unlike headers, they are sent in every protocol
	// version.
	trace map[string]string
}

// receiver receives the messages of a server.
type receiver interface {
	// receive receives a message; call is the id of the call in whose response it came, ""
	// if unknown.
	receive(m *jsonrpc.Message, call string)
	// unreadable receives the id of a call whose answer cannot be parsed, "" if the call is
	// unknown.
	unreadable(call string, err error)
	// ended is called once, after the last message.
	ended(err error)
}

// deliverMessage passes a text to the receiver as a message.
func deliverMessage(to receiver, text []byte, call string) {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return
	}
	m, err := jsonrpc.Parse(text)
	if err != nil {
		if call == "" {
			call = guessID(text, text)
		}
		to.unreadable(call, guideway.Errorf(guideway.CodeUnavailable, "the server's message is invalid: %w", err))
		return
	}
	to.receive(m, call)
}

// The usual beginnings and ends of a server's message: an id near the beginning, the method
// of a notification or a request, or an id at the very end.
var (
	idAtBegin = regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*[,}]`)
	noAnswer  = regexp.MustCompile(`^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"method"\s*:`)
	idAtEnd   = regexp.MustCompile(`"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`)
)

// isNotification reports, judging by its beginning, whether an unreadable message is a
// notification or a request. If so, no call has lost its answer.
func isNotification(begin []byte) bool { return noAnswer.Match(begin) }

// guessID guesses from the start and end of an unreadable message which call it answers. A
// wrong guess fails another call to the same server, which the server could do anyway.
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
