package wire

import (
	"encoding/binary"
	"errors"
)

// errMessage is a message that is not one of ours.
var errMessage = errors.New("the message is not one of the script protocol")

// encoder appends the parts of a message.
type encoder []byte

func (e *encoder) uint(n uint64) { *e = binary.AppendUvarint(*e, n) }
func (e *encoder) int(n int64)   { *e = binary.AppendVarint(*e, n) }

func (e *encoder) bool(b bool) {
	if b {
		*e = append(*e, 1)
	} else {
		*e = append(*e, 0)
	}
}

func (e *encoder) string(s string) {
	e.uint(uint64(len(s)))
	*e = append(*e, s...)
}

// bytes keeps nil apart from empty.
func (e *encoder) bytes(b []byte) {
	if b == nil {
		e.uint(0)
		return
	}
	e.uint(uint64(len(b)) + 1)
	*e = append(*e, b...)
}

func (e *encoder) blocks(blocks [][]byte) {
	e.uint(uint64(len(blocks)))
	for _, b := range blocks {
		e.bytes(b)
	}
}

// decoder takes the parts off a message. After the first part that is not there
// it gives zero values, and end tells.
type decoder struct {
	rest   []byte
	failed bool
}

func (d *decoder) fail() {
	d.failed = true
	d.rest = nil
}

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.rest)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *decoder) int() int64 {
	n, size := binary.Varint(d.rest)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.rest = d.rest[size:]
	return n
}

func (d *decoder) bool() bool {
	if len(d.rest) == 0 || d.rest[0] > 1 {
		d.fail()
		return false
	}
	b := d.rest[0] == 1
	d.rest = d.rest[1:]
	return b
}

func (d *decoder) take(n uint64) []byte {
	if n > uint64(len(d.rest)) {
		d.fail()
		return nil
	}
	taken := d.rest[:n:n]
	d.rest = d.rest[n:]
	return taken
}

func (d *decoder) string() string { return string(d.take(d.uint())) }

func (d *decoder) bytes() []byte {
	n := d.uint()
	if n == 0 {
		return nil
	}
	return d.take(n - 1)
}

// count reads how many parts follow. Each takes a byte at least, so a count
// beyond what is left is false, and cannot make a reader loop or allocate.
func (d *decoder) count() uint64 {
	n := d.uint()
	if n > uint64(len(d.rest)) {
		d.fail()
		return 0
	}
	return n
}

func (d *decoder) blocks() [][]byte {
	var blocks [][]byte
	for n := d.count(); n > 0; n-- {
		blocks = append(blocks, d.bytes())
	}
	return blocks
}

func (d *decoder) end() error {
	if d.failed || len(d.rest) > 0 {
		return errMessage
	}
	return nil
}
