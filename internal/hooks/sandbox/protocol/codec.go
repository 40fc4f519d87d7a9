package protocol

import (
	"encoding/binary"
	"errors"
)

// errMessage is the error for an invalid message.
var errMessage = errors.New("invalid message of the script protocol")

// encoder appends the parts of a message.
type encoder []byte

func (e *encoder) putUint(n uint64) { *e = binary.AppendUvarint(*e, n) }
func (e *encoder) putInt(n int64)   { *e = binary.AppendVarint(*e, n) }

func (e *encoder) putBool(b bool) {
	if b {
		*e = append(*e, 1)
	} else {
		*e = append(*e, 0)
	}
}

func (e *encoder) putString(s string) {
	e.putUint(uint64(len(s)))
	*e = append(*e, s...)
}

// putBytes encodes nil and empty differently.
func (e *encoder) putBytes(b []byte) {
	if b == nil {
		e.putUint(0)
		return
	}
	e.putUint(uint64(len(b)) + 1)
	*e = append(*e, b...)
}

func (e *encoder) putBlocks(blocks [][]byte) {
	e.putUint(uint64(len(blocks)))
	for _, b := range blocks {
		e.putBytes(b)
	}
}

// decoder reads the parts of a message. After the first missing or invalid part it returns
// zero values, and checkEnd returns an error.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) setError() {
	d.failed = true
	d.rest = nil
}

func (d *decoder) readUint() uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 {
		d.setError()
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *decoder) readInt() int64 {
	n, size := binary.Varint(d.rest)
	if size <= 0 {
		d.setError()
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *decoder) readBool() bool {
	if len(d.rest) == 0 || d.rest[0] > 1 {
		d.setError()
		return false
	}
	b := d.rest[0] == 1
	d.rest = d.rest[1:]
	return b
}

func (d *decoder) readRaw(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.setError()
		return nil
	}
	taken := d.rest[:n:n]
	d.rest = d.rest[n:]
	return taken
}

func (d *decoder) readString() string { return string(d.readRaw(d.readUint())) }

func (d *decoder) readBytes() []byte {
	n := d.readUint()
	if n == 0 {
		return nil
	}
	return d.readRaw(n - 1)
}

// readCount reads the number of following parts. Each has at least one byte, so a larger count
// than the rest is invalid: it cannot make a reader loop or allocate.
func (d *decoder) readCount() uint64 {
	n := d.readUint()
	if n > uint64(len(d.rest)) {
		d.setError()
		return 0
	}
	return n
}

func (d *decoder) readBlocks() [][]byte {
	var blocks [][]byte
	for n := d.readCount(); n > 0; n-- {
		blocks = append(blocks, d.readBytes())
	}
	return blocks
}

func (d *decoder) checkEnd() error {
	if d.failed || len(d.rest) > 0 {
		return errMessage
	}
	return nil
}
