package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A frame is a mark, the length of its message, the number of the call and the
// message. The number is drawn at random for each call and never shown to a
// script: a frame that carries another one was not made by the worker's loop.

// mark begins every frame; its last byte is the version of the protocol.
const mark = "GWS\x01"

// headerSize is the length of what stands before a message.
const headerSize = len(mark) + 4 + 8

// ErrTooLarge is a frame over the reader's limit.
var ErrTooLarge = errors.New("the frame is too large")

// Begin starts a frame in b, which is overwritten; the message is to be appended
// to what it returns, and then Finish completes the frame.
func Begin(b []byte, call uint64) []byte {
	b = append(b[:0], mark...)
	b = append(b, 0, 0, 0, 0)
	return binary.BigEndian.AppendUint64(b, call)
}

// Finish completes a frame that Begin started.
func Finish(b []byte) ([]byte, error) {
	n := len(b) - headerSize
	if n > 1<<31 {
		return nil, ErrTooLarge
	}
	binary.BigEndian.PutUint32(b[len(mark):], uint32(n))
	return b, nil
}

// Read reads one frame with a message of at most limit bytes. The error is
// io.EOF only where the stream ends between two frames.
func Read(r io.Reader, limit int64) (call uint64, message []byte, err error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, nil, fmt.Errorf("read the head of a frame: %w", err)
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

// readMessage grows with what arrives, so that a length alone takes no memory.
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
