package protocol

import (
	"encoding/binary"
	"errors"
)

// errMessage is the error for an invalid message.
var errMessage = errors.New("invalid message of the script protocol")

// codec writes or reads the parts of a message, so that one function describes both. After
// the first missing or invalid part a reader sets zero values, and decode returns an error.
type codec struct {
	writing bool
	// bytes are the written bytes, or the bytes that were not read yet.
	bytes  []byte
	failed bool
}

// encode appends a message to b.
func encode(b []byte, code func(*codec)) []byte {
	c := codec{writing: true, bytes: b}
	code(&c)
	return c.bytes
}

// decode reads a message from all of b.
func decode(b []byte, code func(*codec)) error {
	c := codec{bytes: b}
	if code(&c); c.failed || len(c.bytes) > 0 {
		return errMessage
	}
	return nil
}

func (c *codec) setError() {
	c.failed = true
	c.bytes = nil
}

func (c *codec) codeUint(n *uint64) {
	if c.writing {
		c.bytes = binary.AppendUvarint(c.bytes, *n)
		return
	}
	v, size := binary.Uvarint(c.bytes)
	if size <= 0 {
		c.setError()
		return
	}
	*n, c.bytes = v, c.bytes[size:]
}

func codeInt[T ~int | ~int64](c *codec, n *T) {
	if c.writing {
		c.bytes = binary.AppendVarint(c.bytes, int64(*n))
		return
	}
	v, size := binary.Varint(c.bytes)
	if size <= 0 {
		c.setError()
		return
	}
	*n, c.bytes = T(v), c.bytes[size:]
}

func (c *codec) codeBool(b *bool) {
	switch {
	case c.writing && *b:
		c.bytes = append(c.bytes, 1)
	case c.writing:
		c.bytes = append(c.bytes, 0)
	case len(c.bytes) == 0 || c.bytes[0] > 1:
		c.setError()
	default:
		*b, c.bytes = c.bytes[0] == 1, c.bytes[1:]
	}
}

func codeString[T ~string](c *codec, s *T) {
	n := uint64(len(*s))
	if c.codeUint(&n); c.writing {
		c.bytes = append(c.bytes, *s...)
		return
	}
	*s = T(c.take(n))
}

// codeBytes encodes nil and empty differently.
func (c *codec) codeBytes(b *[]byte) {
	n := uint64(0)
	if c.writing && *b != nil {
		n = uint64(len(*b)) + 1
	}
	if c.codeUint(&n); c.writing {
		c.bytes = append(c.bytes, *b...)
	} else if n > 0 {
		*b = c.take(n - 1)
	}
}

// take returns the next n bytes.
func (c *codec) take(n uint64) []byte {
	if n > uint64(len(c.bytes)) {
		c.setError()
		return nil
	}
	taken := c.bytes[:n:n]
	c.bytes = c.bytes[n:]
	return taken
}

// codeList codes the number of elements and each of them. An element has at least one byte,
// so a larger number than the rest is invalid: it cannot make a reader loop or allocate.
func codeList[T any](c *codec, list *[]T, codeElement func(*T)) {
	n := uint64(len(*list))
	if c.codeUint(&n); c.writing {
		for i := range *list {
			codeElement(&(*list)[i])
		}
		return
	}
	if n > uint64(len(c.bytes)) {
		c.setError()
		return
	}
	for ; n > 0 && !c.failed; n-- {
		var element T
		codeElement(&element)
		*list = append(*list, element)
	}
}
