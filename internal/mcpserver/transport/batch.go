package transport

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// batches holds the JSON-RPC batches of a session. Only 2025-03-26 has them
// (and 2024-11-05, by JSON-RPC); a later version refuses them.
type batches struct {
	// initializeID is the handshake's; its answer names the version.
	initializeID jsonrpc.ID
	allowed      bool
	open         map[jsonrpc.ID]*batch
}

// batch collects the answers to the calls of one line.
type batch struct {
	pending int
	answers [][]byte
}

func (b *batch) text() []byte {
	text := append([]byte{'['}, bytes.Join(b.answers, []byte{','})...)
	return append(text, ']')
}

// answer gives the line to write for a response: its own text, nil while its
// batch waits for others, or the whole batch.
func (b *batches) answer(resp *jsonrpc.Response, text []byte) []byte {
	if b.initializeID.IsValid() && resp.ID == b.initializeID && resp.Error == nil {
		var result struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		if json.Unmarshal(resp.Result, &result) == nil {
			b.allowed = result.ProtocolVersion == "2025-03-26" || result.ProtocolVersion == "2024-11-05"
		}
	}
	of, ok := b.open[resp.ID]
	if !ok {
		return text
	}
	delete(b.open, resp.ID)
	of.answers = append(of.answers, text)
	of.pending--
	if of.pending > 0 {
		return nil
	}
	return of.text()
}

// acceptBatch queues the messages of a batch and answers at once if it holds
// no call to wait for.
func (c *lineConn) acceptBatch(text []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil {
		return c.reply(errorLine(nil, jsonrpc.CodeParseError, "the line is not JSON"))
	}
	c.mu.Lock()
	allowed := c.batches.allowed
	c.mu.Unlock()
	if !allowed {
		return c.reply(errorLine(nil, jsonrpc.CodeInvalidRequest,
			"batches are not part of this protocol version: send one message a line"))
	}
	if len(parts) == 0 {
		return c.reply(errorLine(nil, jsonrpc.CodeInvalidRequest, "the batch is empty"))
	}
	of := &batch{}
	for _, part := range parts {
		msg, bad := decode(part)
		if bad == nil {
			bad = c.join(of, msg)
		}
		if bad != nil {
			of.answers = append(of.answers, bad)
			continue
		}
		c.queue = append(c.queue, msg)
	}
	if of.pending == 0 && len(of.answers) > 0 {
		return c.reply(of.text())
	}
	return nil
}

// join makes the answer to msg, if it is a call, part of a batch's; it gives
// the answer itself if the id is taken. The calls of a batch are handed on
// after all have joined, so that no answer comes before pending is complete.
func (c *lineConn) join(of *batch, msg jsonrpc.Message) []byte {
	req, ok := msg.(*jsonrpc.Request)
	if !ok || !req.IsCall() {
		return nil
	}
	c.mu.Lock()
	_, taken := c.inFlight[req.ID]
	if !taken {
		if c.batches.open == nil {
			c.batches.open = make(map[jsonrpc.ID]*batch)
		}
		c.batches.open[req.ID] = of
		of.pending++
	}
	c.mu.Unlock()
	if taken {
		id, err := json.Marshal(req.ID.Raw())
		if err != nil {
			id = nil
		}
		return errorLine(id, jsonrpc.CodeInvalidRequest, "the id is that of another call in flight")
	}
	c.track(msg)
	return nil
}
