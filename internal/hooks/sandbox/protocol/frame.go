package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A frame is a mark, the length of its message, the number of the call and the message. The
// number is random for each call and never shown to a script: a frame with another number
// was not written by the worker's loop.

// mark is the start of every frame; its last byte is the version of the protocol.
const mark = "GWS\x01"

// headerSize is the length of the header before a message.
const headerSize = len(mark) + 4 + 8

// ErrTooLarge is returned for a frame over the reader's limit.
var ErrTooLarge = errors.New("the frame is too large")

// Begin starts a frame in b, which it overwrites. Append the message to the returned slice,
// then call Finish.
func Begin(b []byte, call uint64) []byte {
	b = append(b[:0], mark...)
	b = append(b, 0, 0, 0, 0)
	return binary.BigEndian.AppendUint64(b, call)
}

// Finish completes a frame started by Begin.
func Finish(b []byte) ([]byte, error) {
	n := len(b) - headerSize
	if n > 1<<31 {
		return nil, ErrTooLarge
	}
	binary.BigEndian.PutUint32(b[len(mark):], uint32(n))
	return b, nil
}

// Read reads one frame with a message of at most limit bytes. It returns io.EOF only if the
// stream ends between two frames.
func Read(r io.Reader, limit int64) (call uint64, message []byte, err error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, nil, fmt.Errorf("read a frame header: %w", err)
		}
		return 0, nil, err
	}
	if string(header[:len(mark)]) != mark {
		return 0, nil, errMessage
	}
	n := int64(binary.BigEndian.Uint32(header[len(mark):]))
	if n > limit {
		return 0, nil, ErrTooLarge
	}
	call = binary.BigEndian.Uint64(header[len(mark)+4:])
	message, err = readMessage(r, n)
	if err != nil {
		return 0, nil, fmt.Errorf("read a frame of %d bytes: %w", n, err)
	}
	return call, message, nil
}

// readMessage allocates as data arrives, so that a false length cannot allocate memory.
func readMessage(r io.Reader, n int64) ([]byte, error) {
	const step = 1 << 20
	message := make([]byte, 0, min(n, step))
	for int64(len(message)) < n {
		have := len(message)
		more := int(min(n-int64(have), step))
		message = append(message, make([]byte, more)...)
		if _, err := io.ReadFull(r, message[have:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	return message, nil
}
